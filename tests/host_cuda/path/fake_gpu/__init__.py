"""A GPU that is not there: numba-cuda's kernels, compiled for the host, on a stand-in for NVIDIA's driver library.

`tests/host_cuda/run.py` builds the library and runs the tests with it; the stand-in for CuPy loads this package.
"""
