"""Parts of `first_contact.sh`: ``python tests/gpu/first_contact.py PART [SCALE]``, of sizes so many times as large."""

from __future__ import annotations

import contextlib
import statistics
import sys
import time

import numpy as np


# ----------------------------------------------------------------------------------------------------------- measuring
def timed(call, repeat=5):
    """Return the median milliseconds of a call on the device, and by the clock, after one that does not count."""
    import cupy

    call()
    found = []
    for _ in range(repeat):
        began, a, b = time.perf_counter(), cupy.cuda.Event(), cupy.cuda.Event()
        a.record()
        call()
        b.record()
        b.synchronize()
        found.append((cupy.cuda.get_elapsed_time(a, b), 1e3 * (time.perf_counter() - began)))
    return tuple(statistics.median(each) for each in zip(*found, strict=True))


@contextlib.contextmanager
def kernels(title):
    """Print how long each kernel takes, waiting for every launch, and what Python adds."""
    import cupy

    from daskclust.core.device.kernels import Kernel

    launch, table = Kernel._launch, {}

    def measured(self, *args):
        a, b, began = cupy.cuda.Event(), cupy.cuda.Event(), time.perf_counter()
        a.record()
        launch(self, *args)
        python = 1e3 * (time.perf_counter() - began)
        b.record()
        b.synchronize()
        row = table.setdefault(self.label, [0, 0.0, 0.0])
        row[:] = row[0] + 1, row[1] + cupy.cuda.get_elapsed_time(a, b), row[2] + python

    Kernel._launch = measured
    try:
        yield
    finally:
        Kernel._launch = launch
    launches, device, python = (sum(row[k] for row in table.values()) for k in range(3))
    print(f"== {title}: {launches} launches, {device:.2f} ms on the device, {python:.2f} ms in Python")
    for name, (count, ms, own) in sorted(table.items(), key=lambda item: -item[1][1])[:14]:
        print(f"   {name:40} x{count:3} {ms:9.3f} ms, Python {own:7.3f} ms")


def on_gpu(values):
    import cupy

    return {name: cupy.asarray(v) for name, v in values.items()} if isinstance(values, dict) else cupy.asarray(values)


def compare(title, estimator, X, **columns):
    """Fit on the device and on the CPU; stop where labels differ."""
    found = estimator.fit(on_gpu(X), **on_gpu(columns)).labels_
    if not np.array_equal(found.get(), estimator.fit(X, **columns).labels_):
        raise SystemExit(f"{title}: DIFFERENT from the CPU's")
    print(f"{title}: equal to the CPU's", flush=True)


# ----------------------------------------------------------------------------------------------------------- the parts
def first_kernel(scale):
    import cupy
    from numba import cuda

    print("capability", cuda.get_current_device().compute_capability, "runtime", cupy.cuda.runtime.runtimeGetVersion())
    from daskclust.core.device.arrays import device_of, fill

    began, array = time.perf_counter(), cupy.zeros(100, cupy.int32)
    device = device_of(array)
    device.run(fill, 100, array, np.int32(1))
    assert (array.get() == 1).all()
    print(f"first kernel {time.perf_counter() - began:.2f} s")
    began = time.perf_counter()
    for _ in range(300):
        device.run(fill, 100, array, np.int32(1))
    print(f"launch {1e6 * (time.perf_counter() - began) / 300:.1f} us of Python")
    x = cupy.empty(int(2**30 * scale), cupy.uint8)
    y, pinned = cupy.empty_like(x), cupy.cuda.alloc_pinned_memory(x.nbytes)
    host = np.frombuffer(pinned, np.uint8, x.nbytes)
    print(f"copy {2 * x.nbytes / timed(lambda: cupy.copyto(y, x))[0] / 1e6:.0f} GB/s")
    print(f"from pinned memory {x.nbytes / timed(lambda: x.set(host))[0] / 1e6:.1f} GB/s")


def union_find(scale):
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    from daskclust.core.device.arrays import device_of
    from daskclust.core.device.unionfind import flatten, start, unite_edges

    rng, n = np.random.default_rng(0), int(2**21 * scale)
    shuffled = rng.permutation(n - 1)
    edges = {
        "random": rng.integers(0, n, (2, 2 * n)),
        "shuffled chain": np.stack([shuffled, shuffled + 1]),
        "star on the last": np.stack([np.full(n - 1, n - 1), np.arange(n - 1)]),  # all threads at one word
        "three hubs": np.stack([rng.integers(0, n, 4 * n), rng.choice([0, n - 1, n // 2], 4 * n)]),
    }
    for title, pairs in edges.items():
        a, b = map(on_gpu, pairs.astype(np.int32))
        device = device_of(a)
        parent = device.empty(n, np.int32)
        device.run(start, n, parent)
        device.run(unite_edges, len(a), a, b, parent)
        device.run(flatten, n, parent)
        count, labels = connected_components(coo_array((np.ones(len(pairs[0]), bool), pairs), (n, n)))
        first = np.full(count, n)
        np.minimum.at(first, labels, np.arange(n))
        print(f"union-find, {title}:", "ok" if (parent.get() == first[labels]).all() else "WRONG", flush=True)


def streams(scale):
    """Fit on a non-blocking stream, right after another kernel has written the points there."""
    import cupy

    from daskclust import CLUE

    with cupy.cuda.Stream(non_blocking=True):
        for seed in range(10):
            X = np.random.default_rng(seed).uniform(0, 100, (int(200_000 * scale), 2)).astype(np.float32)
            labels = CLUE(dc=1.0, rhoc=5.0).fit(on_gpu(X) * np.float32(1)).labels_
            if not np.array_equal(labels.get(), CLUE(dc=1.0, rhoc=5.0).fit(X).labels_):
                raise SystemExit("streams: DIFFERENT from the CPU's")
    print("streams: equal to the CPU's")


def barrier(scale):
    """Cluster cells: blocks wait for each other within a kernel."""
    from daskclust import MahalanobisHCA
    from daskclust.datasets import cytometry

    for n in (300, 5000, 12000):
        X = cytometry(max(60, int(n * scale)), channels=14, rng=1)["X"].values
        compare(f"Mahalanobis, {len(X)} x 14", MahalanobisHCA(), X)


def clue(scale):
    from daskclust import CLUE

    rng, n = np.random.default_rng(0), int(1e6 * scale)
    X, layer = rng.uniform(0, 250 * scale**0.5, (n, 2)).astype(np.float32), np.arange(n) % 100
    weight = rng.exponential(1, n).astype(np.float32)
    on = {"X": on_gpu(X), "layer": on_gpu(layer), "sample_weight": on_gpu(weight)}
    for kernel in ("flat", "gaussian"):
        estimator = CLUE(dc=1.3, rhoc=5.0, kernel=kernel)
        ms = timed(lambda its=estimator: its.fit(**on))
        print(f"CLUE {n}, {kernel}: %.3f ms on the device, %.3f ms by the clock" % ms)
        with kernels(f"CLUE, {kernel}"):
            estimator.fit(**on)
    compare("CLUE", CLUE(dc=1.3, rhoc=5.0, kernel="gaussian"), X, layer=layer, sample_weight=weight)


def fof(scale):
    from daskclust import FriendsOfFriends

    rng, n = np.random.default_rng(0), int(37e6 * scale)
    side, half = n ** (1 / 3), n // 2  # half of the points in halos of many sizes
    halo = rng.uniform(0, side, (n // 900 + 1, 3))[(rng.random(half) ** 3 * (n // 900)).astype(int)]
    X = np.concatenate([rng.uniform(0, side, (n - half, 3)), halo + 0.3 * rng.normal(size=(half, 3))]) % side
    X = on_gpu(rng.permutation(X.astype(np.float32)))
    estimator = FriendsOfFriends(0.2, boxsize=side * 1.000001)
    print(f"friends-of-friends {n}: %.1f ms on the device, %.1f ms by the clock" % timed(lambda: estimator.fit(X), 3))
    with kernels("friends-of-friends"):
        estimator.fit(X)


def hits_of(n):
    """Return tracks of 8 pixels, 2e8 hits a second."""
    rng, step, k = np.random.default_rng(0), np.arange(8), n // 8
    toa = (rng.integers(0, 26 * k, k)[:, None] + step).ravel() * 1.5625
    order = np.argsort(toa, kind="stable")
    x = (rng.integers(0, 248, k)[:, None] + step).ravel()[order].astype(np.uint16)
    return {"x": x, "y": np.repeat(rng.integers(0, 256, k), 8)[order].astype(np.uint16), "toa": toa[order]}


def events(scale):
    from daskclust import EventBuilder
    from daskclust.readout.gpu import cluster_on_gpu

    hits, builder = hits_of(int(1e8 * scale)), EventBuilder(dt_max=200.0)
    on, n = on_gpu(hits), len(hits["x"])
    ms, wall = timed(lambda: builder.fit(on), 3)
    print(f"events {n}: {n / ms / 1e6:.2f} Ghit/s on the device, {n / wall / 1e6:.2f} by the clock")
    with kernels("events"):
        labels = builder.fit(on).labels_.get()
    for lanes in (2, 4):
        began = time.perf_counter()
        found, _ = cluster_on_gpu(hits, builder, lanes=lanes)
        print(f"host to host, {lanes} lanes: {n / (time.perf_counter() - began) / 1e9:.3f} Ghit/s")
        assert (found == labels).all()


def hca(scale):
    from daskclust import MahalanobisHCA
    from daskclust.datasets import cytometry

    X = on_gpu(cytometry(max(60, int(44_000 * scale)), channels=14, rng=1)["X"].values)
    MahalanobisHCA().fit(X[: max(50, len(X) // 9)])
    began = time.perf_counter()
    with kernels(f"Mahalanobis, {len(X)} x 14"):
        MahalanobisHCA().fit(X)
    print(f"Mahalanobis, {len(X)} x 14: {time.perf_counter() - began:.2f} s")


def small(scale):
    from daskclust import CLUE, DBSCAN, EventBuilder, FriendsOfFriends, MahalanobisHCA

    rng, n = np.random.default_rng(0), max(300, int(3000 * scale))
    X, P = rng.uniform(0, n**0.5, (n, 2)).astype(np.float32), rng.uniform(0, n ** (1 / 3), (n, 3)).astype(np.float32)
    compare("CLUE", CLUE(dc=1.0, rhoc=3.0, delta_o=2.5), X, layer=np.arange(n) % 3)
    compare("friends-of-friends", FriendsOfFriends(0.6, boxsize=n ** (1 / 3) * 1.01), P)
    compare("DBSCAN", DBSCAN(0.8, min_samples=5), P)
    compare("events", EventBuilder(40.0, min_hits=2), hits_of(n))
    compare("Mahalanobis", MahalanobisHCA(20), P[:200].astype(np.float64))


PARTS = {part.__name__: part for part in (first_kernel, union_find, streams, barrier, small, clue, fof, events, hca)}

if __name__ == "__main__":
    PARTS[sys.argv[1]](float((*sys.argv, 1.0)[2]))
