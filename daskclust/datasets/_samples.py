"""Public sample files: where they are, their checksums, and how to get them. Public as `daskclust.datasets.fetch`."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PublicFile:
    """One public sample file.

    Parameters
    ----------
    url : str
        Where it is.
    sha256 : str
        Its checksum, 64 hexadecimal digits.
    doc : str
        What it is, and its licence or origin.
    """

    url: str
    sha256: str
    doc: str


_CLUE = "https://gitlab.cern.ch/kalos/clue/-/raw/master/data/input/"
_CLUE_DOC = "kalos/clue (CERN), data/input: x, y, layer, weight without header"
# By commit, as files move in that repository.
_SNS = "https://raw.githubusercontent.com/ornlneutronimaging/mcpevent2hist/"
_SNS_DOC = "ornlneutronimaging/mcpevent2hist, Timepix3 quad at the Spallation Neutron Source: raw, as written by SERVAL"

FILES: dict[str, PublicFile] = {
    f"clue/{name}": PublicFile(_CLUE + name, sha256, _CLUE_DOC)
    for name, sha256 in {
        "aniso_1000.csv": "66bc1bb2798eda4ce845026eb4ddb7bcc49986e816ff79a67d20cd964bb2f8f9",
        "circles_1000.csv": "83cbd34d0a4a948b8295f62860041a5819736f62f5c5eef521d9b93f887ccbaa",
        "moons_1000.csv": "f5df4e71213a308f33342b72cf6faa5117e5720f3d8c15e845c9082efd0043c4",
        "sissa_1000.csv": "55361ed0322b807ab59c2d0e3757b23dbd1ed6f85f022481ecf004bec12a3e40",
        "sissa_4000.csv": "6948e1698120828c1d16221b3d62c48af79882a3c035979e5a61bd1ce68d324e",
        "toyDetector_1000.csv": "b1419a789517c20c6a3452a6ad0752a553397139f2efe80969c5daeae8cbfae2",
        "toyDetector_5000.csv": "f58e6536c4fd8b97e556f89808064eaf5e1fc3c14bdd25965f62af901fd43179",
        "toyDetector_10000.csv": "81005b0844b8d17b80f8ec1c1900cd6518af7b5f17e8bdd8766d1bd2936a4200",
    }.items()
} | {
    f"timepix/sns_{name}": PublicFile(f"{_SNS}{commit}/sophiread/resources/data/{name}", sha256, _SNS_DOC)
    for name, commit, sha256 in (
        (
            "rollover_test_data.tpx3",
            "37de844c7e36873938d0bb66fdc743e7d5e2ef27",
            "e65dd912fa4f92d9af28fca9cc8dac6a256c11d191e504b19f7c0e772102dbd9",
        ),
        (
            "suann_socket_background_serval32.tpx3",
            "c1c148cd07e513932a800cffae08918f75f8be73",
            "8dbc8f008da105f346bf93188004069bce4b87b5312ece22700ca3dd206216fb",
        ),
    )
}
"""Every file that `fetch` knows, by its name."""


def fetch(name: str) -> Path:
    """Return the local path of a public sample file, after a download if need be.

    Parameters
    ----------
    name : str
        A key of `FILES`, such as ``"clue/moons_1000.csv"``; the part after the slash is enough.

    Returns
    -------
    pathlib.Path
        The file, whose checksum is right. Where the environment variable ``DASKCLUST_DATA`` names a folder that has
        the file (``clue/moons_1000.csv`` or ``moons_1000.csv``), that one; else one in the user's cache.

    Raises
    ------
    ValueError
        For unknown names, a wrong checksum, and a ``DASKCLUST_DATA`` that is no folder.
    ImportError
        Without pooch, where the file has to be downloaded.
    OSError
        Where the download fails.

    Examples
    --------
    >>> from daskclust.io import read_hits
    >>> ds = read_hits(fetch("moons_1000.csv"))  # doctest: +SKIP
    """
    key = _file_key(name)
    found = _in_mirror(key)
    if found is not None:
        _check_sum(found, FILES[key].sha256)
        return found
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            'downloading sample data needs pooch: pip install "daskclust[io]"; '
            f"or put {key} into a folder and name that in the environment variable DASKCLUST_DATA"
        ) from error
    folder, file = key.rsplit("/", 1)
    known_hash = f"sha256:{FILES[key].sha256}"
    return Path(pooch.retrieve(FILES[key].url, known_hash, fname=file, path=pooch.os_cache("daskclust") / folder))


def _file_key(name: str) -> str:
    """Return the key of `FILES` for a name with or without its folder."""
    matches = [key for key in FILES if name in (key, key.rsplit("/", 1)[1])]
    if len(matches) != 1:
        raise ValueError(f"unknown sample file {name!r}; known: {', '.join(sorted(FILES))}")
    return matches[0]


def _in_mirror(key: str) -> Path | None:
    """Return the file in the folder that ``DASKCLUST_DATA`` names, if it is there."""
    mirror = os.environ.get("DASKCLUST_DATA")
    if not mirror:
        return None
    if not Path(mirror).is_dir():
        raise ValueError(
            f"the environment variable DASKCLUST_DATA is {mirror!r}, which is no folder; correct or unset it"
        )
    candidates = (Path(mirror, key), Path(mirror, key.rsplit("/", 1)[1]))
    return next((path for path in candidates if path.is_file()), None)


def _check_sum(path: Path, expected: str) -> None:
    """Raise where a file has another checksum."""
    with path.open("rb") as stream:
        actual = hashlib.file_digest(stream, "sha256").hexdigest()
    if actual != expected:
        raise ValueError(
            f"{path} has sha256 {actual}, expected {expected}: it is damaged or another version; "
            "delete it and fetch again"
        )
