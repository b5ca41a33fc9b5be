"""Public sample files: where they are, their checksums, and how to get them. Public as `daskclust.datasets.fetch`."""

from __future__ import annotations

import hashlib
import logging
import os
import warnings
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PublicFile:
    """One public sample file.

    Parameters
    ----------
    url, checksum, doc : str
        Where it is, empty where it cannot be downloaded by itself; ``"sha256:"`` or ``"git:"`` and hexadecimal digits,
        the latter the id that git gives the file in a repository; what it is, and its licence or origin.
    """

    url: str
    checksum: str
    doc: str


_CLUE = "https://gitlab.cern.ch/kalos/clue/-/raw/master/data/input/"
_CLUE_DOC = "kalos/clue (CERN), data/input: x, y, layer, weight without header"
_CLUE_FILES = {
    "aniso_1000.csv": "66bc1bb2798eda4ce845026eb4ddb7bcc49986e816ff79a67d20cd964bb2f8f9",
    "circles_1000.csv": "83cbd34d0a4a948b8295f62860041a5819736f62f5c5eef521d9b93f887ccbaa",
    "moons_1000.csv": "f5df4e71213a308f33342b72cf6faa5117e5720f3d8c15e845c9082efd0043c4",
    "sissa_1000.csv": "55361ed0322b807ab59c2d0e3757b23dbd1ed6f85f022481ecf004bec12a3e40",
    "sissa_4000.csv": "6948e1698120828c1d16221b3d62c48af79882a3c035979e5a61bd1ce68d324e",
    "toyDetector_1000.csv": "b1419a789517c20c6a3452a6ad0752a553397139f2efe80969c5daeae8cbfae2",
    "toyDetector_5000.csv": "f58e6536c4fd8b97e556f89808064eaf5e1fc3c14bdd25965f62af901fd43179",
    "toyDetector_10000.csv": "81005b0844b8d17b80f8ec1c1900cd6518af7b5f17e8bdd8766d1bd2936a4200",
}
_GITHUB = "https://raw.githubusercontent.com/"  # by commit, as files move in these repositories
_SNS = f"{_GITHUB}ornlneutronimaging/mcpevent2hist/{{}}/sophiread/resources/data/{{}}"
_SNS_DOC = "ornlneutronimaging/mcpevent2hist, Timepix3 quad at the Spallation Neutron Source: raw, as written by SERVAL"
_LEVINE = {  # by the number of markers: the commit, the id of the file, and what is in it
    13: ("003f90cd059df74920de219fedbb8a6bcbeb9e2b", "fb283950f72bc0cfeae17a5102d90a4a33e6e381", "167 044 cells, 24"),
    32: ("c6737786dcff3a50145993efed451a2af55e0a00", "2516e587b4236faa92104561e316fe536a115bf2", "265 627 cells, 14"),
}
_LEVINE_DOC = "populations gated by hand (Levine et al. 2015, Cell 162, 184): arcsinh(x / 5), label NaN where not gated"

FILES: dict[str, PublicFile] = {
    **{f"clue/{name}": PublicFile(_CLUE + name, f"sha256:{sha256}", _CLUE_DOC) for name, sha256 in _CLUE_FILES.items()},
    "timepix/sns_rollover_test_data.tpx3": PublicFile(
        _SNS.format("37de844c7e36873938d0bb66fdc743e7d5e2ef27", "rollover_test_data.tpx3"),
        "sha256:e65dd912fa4f92d9af28fca9cc8dac6a256c11d191e504b19f7c0e772102dbd9",
        _SNS_DOC,
    ),
    "timepix/sns_suann_socket_background_serval32.tpx3": PublicFile(
        _SNS.format("c1c148cd07e513932a800cffae08918f75f8be73", "suann_socket_background_serval32.tpx3"),
        "sha256:8dbc8f008da105f346bf93188004069bce4b87b5312ece22700ca3dd206216fb",
        _SNS_DOC,
    ),
    "halos/cosmo32768.dat": PublicFile(
        f"{_GITHUB}pec27/hfof/fb5f27f02a7a51b419c54db7c852fc696e2c5f3c/tests/cosmo32768.dat",
        "sha256:54669000a2c01876eb106951aa8fa9b56d18d1a679e4c8398c7466b21a5c6c56",
        "pec27/hfof (MIT), tests: a cosmological simulation, a sample of 32^3 particles; uint16, times 1/65536 in a "
        "unit box",
    ),
    "cytometry/nilsson_rare_sub4423_d14.bin": PublicFile(
        "",
        "sha256:1b9580aee3a0de547c89bae511baac9d72762aa12664d227a783733ae61b98ca",
        "asmelko/gmhc (MIT), in the history of para/tests/input/nilsson: bone marrow cells of Nilsson et al. 2013 with "
        "14 channels, in the format of gmhclust",
    ),
    **{
        f"cytometry/Levine_{d}dim.fcs": PublicFile(
            f"{_GITHUB}lmweber/benchmark-data-Levine-{d}-dim/{commit}/data/Levine_{d}dim.fcs",
            f"git:{blob}",
            f"lmweber/benchmark-data-Levine-{d}-dim (MIT): {d} markers of {what} {_LEVINE_DOC}",
        )
        for d, (commit, blob, what) in _LEVINE.items()
    },
}
"""Every file that `fetch` knows, by its name."""


def fetch(name: str, *, offline: bool | None = None) -> Path:
    """Return the local path of a public sample file, after a download if need be.

    Parameters
    ----------
    name : str
        A key of `FILES`, such as ``"clue/moons_1000.csv"``; the part after the slash is enough.
    offline : bool, optional
        Whether to do without a download. Default: as the environment variable ``DASKCLUST_OFFLINE`` says, where it is
        set and neither empty nor 0; else downloads are allowed.

    Returns
    -------
    pathlib.Path
        The file, whose checksum is right. Where the environment variable ``DASKCLUST_DATA`` names a folder that has
        the file (``clue/moons_1000.csv`` or ``moons_1000.csv``), that one; else one in the user's cache:
        ``~/.cache/daskclust`` on Linux, or ``daskclust`` within ``XDG_CACHE_HOME``.

    Raises
    ------
    ValueError
        For unknown names, a wrong checksum, and a ``DASKCLUST_DATA`` that is no folder.
    ImportError
        Without pooch, where the file is not in the folder that ``DASKCLUST_DATA`` names.
    OSError
        Where the file is not here, and cannot be downloaded: without a network, `offline`, or without an address.

    Examples
    --------
    >>> from daskclust.io import read_hits
    >>> ds = read_hits(fetch("moons_1000.csv"))  # doctest: +SKIP
    """
    matches = [key for key in FILES if name in (key, key.rsplit("/", 1)[1])]
    if len(matches) != 1:
        raise ValueError(f"unknown sample file {name!r}; known: {', '.join(sorted(FILES))}")
    key = matches[0]
    file, path = FILES[key], _in_mirror(key)
    if path is None:
        remedy = f"put {key} into a folder and name that in the environment variable DASKCLUST_DATA"
        try:
            with warnings.catch_warnings():  # in a notebook without ipywidgets, of a bar that is not drawn
                warnings.filterwarnings("ignore", "IProgress not found")
                import pooch
        except ImportError as error:
            raise ImportError(f'downloading needs pooch: pip install "daskclust[io]"; or {remedy}') from error
        path = Path(pooch.os_cache("daskclust"), key)
        if offline is None:
            offline = os.environ.get("DASKCLUST_OFFLINE", "") not in ("", "0")
        if file.url and not offline:
            return _download(file, path, remedy)
        if not path.is_file():
            why = "downloads are switched off; allow them" if file.url else f"has no address ({file.doc})"
            raise FileNotFoundError(f"{path} is not there, and {why}, or {remedy}")
    if wrong := _wrong(file, path):
        raise ValueError(f"{path} {wrong}; delete it and fetch again")
    return path


def _wrong(file: PublicFile, path: Path) -> str:
    """Return in words how the checksum of what is at a path differs, "" where it is right."""
    kind, _, expected = file.checksum.partition(":")
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size) if kind == "git" else hashlib.sha256()
    with path.open("rb") as stream:
        actual = hashlib.file_digest(stream, lambda: digest).hexdigest()
    return "" if actual == expected else f"has {kind} {actual}, expected {expected}: damaged or another version"


def _download(file: PublicFile, path: Path, remedy: str) -> Path:
    """Return the file in the cache, downloaded where it is not there or damaged."""
    import pooch

    if path.is_file() and _wrong(file, path):
        path.unlink()
    url, logger = file.url, pooch.get_logger()
    level = logger.level
    # a network that answers nothing should cost seconds, not minutes
    download = pooch.HTTPDownloader(timeout=(5, 30))

    def checked(url: str, place: str, _: object) -> None:
        download(url, place, None)
        if wrong := _wrong(file, Path(place)):
            raise ValueError(f"{path.name} from {url} {wrong}; try again, or download it elsewhere and {remedy}")

    try:
        logger.setLevel(logging.WARNING)  # two lines on each file are no part of a notebook
        pooch.retrieve(url, None, fname=path.name, path=path.parent, downloader=checked)
    except OSError as error:  # those of requests are among them
        raise OSError(
            f"{path.name} could not be downloaded from {url} ({type(error).__name__}); "
            f"try again with a network, or download it elsewhere and {remedy}"
        ) from error
    finally:
        logger.setLevel(level)
    return path


def _in_mirror(key: str) -> Path | None:
    """Return the file in the folder that ``DASKCLUST_DATA`` names, if it is there."""
    mirror = os.environ.get("DASKCLUST_DATA")
    if not mirror:
        return None
    if not Path(mirror).is_dir():
        raise ValueError(f"the variable DASKCLUST_DATA must be a folder, got {mirror!r}; correct or unset it")
    candidates = (Path(mirror, key), Path(mirror, key.rsplit("/", 1)[1]))
    return next((path for path in candidates if path.is_file()), None)
