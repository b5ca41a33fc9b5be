"""Walk through walk.md as a newcomer would: run its commands in a new folder, and say how long each step takes.

    python docs/walk.py [FOLDER]

Commands are those of the blocks marked bash, step by step; a step is a heading. A line after "# an error" must fail,
with two lines on standard error. FOLDER is made, and is empty at the beginning; by default it is a temporary one.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ADDRESS = "<address of the repository>"


def steps(text):
    """Yield headings and their lines of bash."""
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        blocks = re.findall(r"^```bash\n(.*?)^```", part, flags=re.M | re.S)
        if blocks:
            yield part.splitlines()[0], "".join(blocks)


def script(lines):
    """Return lines of bash that stop at the first one that fails, and check errors that are meant."""
    joined = lines.replace(ADDRESS, f'"{HERE.parent}"').replace("\\\n", " ")
    checked, is_meant = [], False
    for line in joined.splitlines():
        if not line.startswith("# an error"):
            told = f'! {line} 2> .told; test "$(wc -l < .told)" -eq 2; cat .told; rm .told'
            checked.append(told if is_meant else line)
        is_meant = line.startswith("# an error")
    return "\n".join(checked)


def walk(folder):
    """Run all steps in one shell each, in the folder that they share; return their seconds."""
    others = ("PYTHON", "NUMBA", "VIRTUAL", "DASKCLUST")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = environment["PIP_NO_CACHE_DIR"] = "1"
    took = {}
    for name, lines in steps((HERE / "walk.md").read_text(encoding="utf-8")):
        print(f"==== {name}", flush=True)
        begin = time.perf_counter()
        activate = "test ! -f daskclust/.venv/bin/activate || . daskclust/.venv/bin/activate"
        subprocess.run(["bash", "-euc", f"{activate}\n{script(lines)}"], cwd=folder, env=environment, check=True)
        took[name] = time.perf_counter() - begin
        print(f"---- {took[name]:.1f} s", flush=True)
    return took


def main():
    """Walk, and print a table."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        sys.exit(f"{folder} is not empty; a newcomer has nothing yet")
    took = walk(folder)
    print("\n| step | seconds |\n|---|---:|")
    for name, seconds in {**took, "all": sum(took.values())}.items():
        print(f"| {name} | {seconds:.1f} |")


if __name__ == "__main__":
    main()
