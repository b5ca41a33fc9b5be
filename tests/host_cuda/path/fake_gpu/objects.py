"""Machine code of the host for kernels of numba-cuda, in the place of the GPU's.

It is made where numba-cuda would call NVVM and the linker, and has the form of its machine code, so that numba-cuda
keeps it in its cache on disk and gives it to the driver, which gives it back to be loaded.
"""

from __future__ import annotations

import ctypes
import functools
import json
import logging
import os
import re
import struct
from types import SimpleNamespace
from typing import Any

from llvmlite import binding as llvm

from fake_gpu import driver
from fake_gpu.translate import Entry, host_module

_MAGIC = b"\x7fELF of the host\n"
_HEADER = struct.Struct(f"<{len(_MAGIC)}sII")  # magic, bytes of JSON, bytes of machine code
_OPTIMIZE = 1
_log = logging.getLogger(__name__)


_loaded: list[Any] = []  # what owns the machine code


@functools.cache
def _target() -> Any:
    """Return the host; without fused multiply-add, which rounds once where kernels of CPU and GPU round twice."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.load_library_permanently("libcuda.so.1")
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features()
    features.update({"fma": False, "fma4": False})
    return target.create_target_machine(
        opt=_OPTIMIZE, cpu=llvm.get_host_cpu_name(), features=features.flatten(), reloc="pic", jit=True
    )


def compile_for_host(texts: list[str], name: str) -> bytes:
    """Return machine code for a kernel's IR, in the form that the stand-in driver loads."""
    module, entry = host_module(texts, name)
    target = _target()
    module.triple, module.data_layout = llvm.get_process_triple(), str(target.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=_OPTIMIZE)
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)
    _refuse_unknown(module, name)
    about, code = json.dumps(entry._asdict()).encode(), target.emit_object(module)
    return _HEADER.pack(_MAGIC, len(about), len(code)) + about + code


def _refuse_unknown(module: Any, name: str) -> None:
    unknown = sorted(
        function.name
        for function in module.functions
        if function.is_declaration
        and not function.name.startswith("llvm.")
        and not hasattr(driver.LIBRARY, function.name)
    )
    if unknown:
        raise NotImplementedError(
            f"the stand-in for CUDA does not know {', '.join(unknown)}, which {driver.short(name)} calls; "
            "add it to tests/host_cuda/driver/device.c"
        )


def _load(place: int) -> int | None:
    """Load machine code that the driver is given; return the driver's kernel, None where it is another's."""
    try:
        magic, n_about, n_code = _HEADER.unpack(ctypes.string_at(place, _HEADER.size))
        if magic != _MAGIC:
            return None
        about = ctypes.string_at(place + _HEADER.size, n_about)
        code = ctypes.string_at(place + _HEADER.size + n_about, n_code)
        entry = Entry(**json.loads(about))
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _engine_target())
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _loaded.append(engine)
        name = driver.short(entry.name).encode()
        address = engine.get_function_address("run")
        return driver.LIBRARY.lane_make_kernel(name, address, entry.kinds.encode(), entry.shared, entry.meets)
    except Exception:
        _log.exception("machine code that the stand-in driver cannot load")
        return None


def _engine_target() -> Any:
    _target()
    return llvm.Target.from_default_triple().create_target_machine(jit=True)  # an engine keeps it for itself


_loader = driver.LOADER(_load)


@functools.cache
def install() -> None:
    """Let the compiler of CUDA kernels compile for the host, and the driver load what comes of it."""
    if os.environ.get("DASKCLUST_CUDA_COMPILER") == "numba-cuda-mlir":
        _install_in_mlir()
    else:
        _install_in_numba_cuda()
    driver.LIBRARY.lane_set_loader(_loader)


def _install_in_mlir() -> None:
    from numba_cuda_mlir import mlir_optimization, tools

    tools._cached_cc = (10, 0)  # for which it makes IR that the host's compiler takes

    class Linker:
        def recreate_with_lto(self, **_: Any) -> Linker:
            return self

        def add_ptx(self, text: bytes) -> None:
            self.text = text.decode()

        def complete(self) -> Any:
            name = re.search(r"define ptx_kernel void @([^(]+)[(]", self.text)[1]
            return SimpleNamespace(code=compile_for_host([self.text], name.strip('"')))

    optimize = mlir_optimization.optimize

    def optimize_for_host(result: Any) -> None:
        result.metadata["linker"] = Linker()
        optimize(result)

    mlir_optimization.optimize = optimize_for_host
    mlir_optimization._compile_to_ptx = lambda text, *_: text


def _install_in_numba_cuda() -> None:
    from cuda.core import ObjectCode
    from numba.cuda.codegen import CUDACodeLibrary

    def get_cubin(library: Any, cc: Any = None) -> Any:
        cc = library._ensure_cc(cc)
        if cc not in library._cubin_cache:
            code = compile_for_host(library.llvm_strs, library._entry_name)
            library._cubin_cache[cc], library._linkerinfo_cache[cc] = (
                ObjectCode.from_cubin(code, name=library._name),
                "",
            )
        return library._cubin_cache[cc]

    CUDACodeLibrary.get_cubin = get_cubin
    CUDACodeLibrary.get_asm_strs = lambda library, cc=None: library.llvm_strs  # looked at for what has to be linked
