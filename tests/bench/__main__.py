"""Run the command from the folder: ``python tests/bench``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where the package `bench` is
    from bench.command import main

    main()
