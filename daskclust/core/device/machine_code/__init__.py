"""From bodies to machine code: how numba compiles kernels, where it is kept, what was shipped, and who hears of it."""
