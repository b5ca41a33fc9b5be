"""Walk through walk.md as a newcomer would: run its commands in a new folder, and say how long each step takes.

    python docs/walk.py [FOLDER]

Commands are those of the blocks marked bash, under their headings. A line after "# an error" must fail, with two lines
on standard error; `daskclust explore` ends when its page was loaded. FOLDER is made, and is empty at the beginning; by
default it is a temporary one.
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
ACTIVATE = "test ! -f daskclust/.venv/bin/activate || . daskclust/.venv/bin/activate"
# The first request makes the page: it reads the file, clusters and draws.
EXPLORE = """{line} --no-browser &> .page &
until grep -q http .page; do kill -0 $! || {{ cat .page; exit 1; }}; sleep 0.1; done
python -c 'import re, urllib.request as web; web.urlopen(re.search(r"http://[^ ]+", open(".page").read())[0]).read()'
kill $!; wait $! || true; rm .page"""


def steps(text):
    """Yield headings and their blocks of bash."""
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        blocks = re.findall(r"^```bash\n(.*?)^```", part, flags=re.M | re.S)
        if blocks:
            yield part.splitlines()[0], blocks


def script(lines):
    """Return lines of bash that stop at the first one that fails, and check errors that are meant."""
    joined = lines.replace(ADDRESS, f'"{HERE.parent}"').replace("\\\n", " ")
    checked, is_meant = [], False
    for line in joined.splitlines():
        if not line.startswith("# an error"):
            told = f'! {line} 2> .told; test "$(wc -l < .told)" -eq 2; cat .told; rm .told'
            explored = EXPLORE.format(line=line) if line.startswith("daskclust explore") else line
            checked.append(told if is_meant else explored)
        is_meant = line.startswith("# an error")
    return "\n".join(checked)


def walk(folder):
    """Run each block in a shell, in the folder that they share; return their seconds by heading."""
    others = ("PYTHON", "NUMBA", "VIRTUAL", "DASKCLUST")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = environment["PIP_NO_CACHE_DIR"] = environment["PYTHONUNBUFFERED"] = (
        "1"
    )
    took = {}
    for name, blocks in steps((HERE / "walk.md").read_text(encoding="utf-8")):
        print(f"==== {name}", flush=True)
        took[name] = []
        for lines in blocks:
            begin = time.perf_counter()
            subprocess.run(["bash", "-euc", f"{ACTIVATE}\n{script(lines)}"], cwd=folder, env=environment, check=True)
            took[name].append(time.perf_counter() - begin)
            print(f"---- {took[name][-1]:.1f} s", flush=True)
    return took


def main():
    """Walk, and print a table."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        sys.exit(f"{folder} is not empty; a newcomer has nothing yet")
    took = walk(folder)
    print("\n| seconds | command | picture | explorer |\n|---|---:|---:|---:|")
    for name, seconds in {**took, "all": [sum(map(sum, took.values()))]}.items():
        print(f"| {name} | {' | '.join(f'{each:.1f}' for each in seconds)} |{' |' * (3 - len(seconds))}")


if __name__ == "__main__":
    main()
