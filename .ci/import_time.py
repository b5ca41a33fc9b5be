"""Fail where `import daskclust` takes more than 100 ms: the median of five processes."""

import os
import statistics
import subprocess
import sys

code = "import time; t = time.perf_counter(); import daskclust; print(time.perf_counter() - t)"
os.chdir("/")  # the installed package, not the one of the clone
times = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) for _ in range(5)]
print(f"import daskclust: {1e3 * statistics.median(times):.0f} ms")
sys.exit(statistics.median(times) > 0.1)
