"""Machine code of kernels that was made beforehand: the same answers, and compiled here where it does not fit."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

from daskclust.core.device import shipped
from daskclust.core.device.arguments import flatten

Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    ("args", "kinds"),
    [
        ((1, 2.0, True), ("i8", "f8", "b1")),
        ((np.int32(1), np.float32(2), np.uint64(3), np.bool_(0)), ("i4", "f4", "u8", "b1")),
        ((np.zeros(3), np.zeros((2, 3), np.float32)), ("f8[1,C]", "f4[2,C]")),
        ((np.zeros((2, 3)).T, np.zeros((4, 4))[::2, ::2]), ("f8[2,F]", "f8[2,A]")),
        ((Pair(1, (2.0,)),), ("Pair(", "i8", "tuple(", "f8", ")", ")")),
    ],
)
def test_types_of_arguments(args, kinds):
    assert flatten(args)[0] == kinds


def test_read_only_arrays_have_types_of_their_own():
    array = np.zeros(3)
    array.flags.writeable = False
    assert flatten((array,))[0] == ("f8[1,C]r",)


def test_names_tell_kernels_and_types_apart():
    names = {shipped.symbol(label, kinds) for label in ("a.b", "a.c") for kinds in (("i8",), ("i8", "i8"), ("f8",))}
    assert len(names) == 6
