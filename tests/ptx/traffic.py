"""How many bytes a point kernels read and write, counted; ``PYTHONPATH=tests python -m ptx.traffic`` writes the page.

Of each array that a launch is given, the kernel's PTX tells whether it is read or written, and whether at places that
were read from memory (a gather, or a scatter). Each array counts once and whole, as caches would have it at best.
"""

import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from ptx.assembling import compiled, without_device
from ptx.recorder import stand_in

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "gpu_bytes.md"
BEGIN = "<!-- what follows is written by tests/ptx/traffic.py -->"
_REGISTER = re.compile(r"%[a-z]+\d+")
_MEMORY = re.compile(r"(ld|st|atom|red)\.(?!param|shared|local|const)")


def accesses(ptx):
    """Return what a kernel does with memory: of each parameter whether it is read, written, and so in no order."""
    lines = [line.strip().rstrip(";") for line in ptx[ptx.index(".entry") :].splitlines()]
    lines = [re.sub(r"^@!?%p\d+\s+", "", line) for line in lines if "%" in line and not line.startswith(".")]
    bases, loaded, found, before = defaultdict(set), set(), defaultdict(set), None
    while before != (before := (sum(map(len, bases.values())), len(loaded))):  # until nothing new is learned
        for line in lines:
            operation, _, operands = line.partition(" ")
            place = re.search(r"\[([^\]]*)\]", operands)
            registers = _REGISTER.findall(operands.replace(place[0], "") if place else operands)
            if operation.startswith("ld.param"):
                bases[registers[0]] |= {int(re.search(r"_param_(\d+)", place[1])[1])}
            elif _MEMORY.match(operation) and place:
                address = _REGISTER.findall(place[1])
                kind = operation[:2]
                for base in set().union(*(bases[each] for each in address)):
                    found[base] |= (
                        {"read"} if kind == "ld" else {"written"} if kind in ("st", "re") else {"read", "written"}
                    )
                    if loaded & set(address):
                        found[base] |= {"in no order"}
                if kind in ("ld", "at"):
                    loaded |= set(registers if kind == "ld" else registers[:1])
            elif registers:
                target, *others = registers
                bases[target] |= set().union(*(bases[each] for each in others))
                loaded |= {target} if loaded & set(others) else set()
    return found


def arrays_of(args, number=1):
    """Yield arrays with the number of the parameter that has their address, as kernels flatten their arguments."""
    for value in args:
        if isinstance(value, tuple):
            yield from arrays_of(value, number)
            number += count(value)
        else:
            if hasattr(value, "strides") and not isinstance(value, np.generic):
                yield value, number
            number += count((value,))


def count(args):
    """Return how many parameters arguments are."""
    from daskclust.core.device.machine_code.cuda_arguments import signature

    return len(signature(1, tuple(args))[1][1])


def bytes_of(launch, n, known):
    """Return the bytes that a launch for `n` points reads in order, in no order, writes in order, and in no order."""
    from daskclust.core.device.machine_code.cuda_arguments import signature

    key, sums = (launch.kernel.full_name, str(signature(launch.first, launch.args))), [0, 0, 0, 0]
    if key not in known:
        known[key] = accesses(compiled(launch.kernel, launch.first, launch.args)[-1])
    done = known[key]
    for array, number in arrays_of(launch.args):
        is_scattered = "in no order" in done[number]
        is_table = is_scattered and array.ndim == 1  # of cells, of which there may be more than points
        size = min(array.nbytes, n * array.itemsize) if is_table else array.nbytes
        for k, what in enumerate(("read", "written")):
            sums[2 * k + is_scattered] += size * (what in done[number])
    return sums


def launches(n=4000):
    """Yield systems, the bytes a point that they cannot do without, and what they launch for `n` points."""
    from daskclust import CLUE, EMST, EventBuilder, FriendsOfFriends
    from daskclust.clue import at_once
    from daskclust.core.space import extent
    from daskclust.dbscan import plan as blocks
    from daskclust.events import plan as windows
    from daskclust.hdbscan import spanning_tree as trees

    rng = np.random.default_rng(0)
    X, P = rng.uniform(0, n**0.5, (n, 2)).astype(np.float32), rng.uniform(0, n ** (1 / 3), (n, 3)).astype(np.float32)
    columns = {name: rng.integers(0, 256, n).astype(np.uint16) for name in "xy"} | {"toa": np.arange(n) * 5.0}
    fits = {
        "CLUE, two coordinates and weights in float32": (
            32,
            [at_once],
            lambda: CLUE(1.3, 3.0).fit(X, sample_weight=X[:, 0].copy()),
        ),
        "Friends-of-friends, three coordinates in float32": (
            16,
            [blocks, extent],
            lambda: FriendsOfFriends(0.4).fit(P),
        ),
        "Spanning tree, three coordinates in float32": (36, [extent, trees], lambda: EMST().fit(P)),
        "Event building, hits in order": (20, [windows], lambda: EventBuilder(200.0).fit(columns)),
    }
    for title, (least, modules, fit) in fits.items():
        with pytest.MonkeyPatch.context() as patch:
            recorder = stand_in(patch, *modules)
            patch.setattr("daskclust.clue.estimator.is_cuda", lambda array: True)
            fit()
        yield title, least, recorder.launched, n


def lines():
    """Yield the lines of the table."""
    for title, least, launched, n in launches():
        yield from (f"## {title}", "", "| kernel | reads | gathers | writes | scatters |", "|---|--:|--:|--:|--:|")
        total = np.zeros(4)
        of_kernel, known = defaultdict(list), {}
        for launch in launched:
            of_kernel[launch.kernel.__name__].append(np.array(bytes_of(launch, n, known)) / n)
        for name, each in of_kernel.items():
            times = f", {len(each)} times" if len(each) > 1 else ""
            total += (all_times := np.sum(each, axis=0))
            yield f"| `{name}`{times} | " + " | ".join(f"{value:.0f}" for value in all_times) + " |"
        yield "| all | " + " | ".join(f"{value:.0f}" for value in total) + " |"
        yield from ("", f"Together {total.sum():.0f} bytes a point; input and results alone are {least}.", "")


def page():
    """Return the page with its table as it is now."""
    return PAGE.read_text().partition(BEGIN)[0] + BEGIN + "\n\n" + "\n".join(lines()).rstrip() + "\n"


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        without_device(patch)
        PAGE.write_text(page())
