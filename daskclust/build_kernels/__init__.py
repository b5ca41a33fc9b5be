"""The command ``python -m daskclust.build_kernels``, which compiles kernels beforehand."""
