/* What kernels call in place of NVVM's intrinsics and of libdevice. Special registers are read from `lane_ids`.

A name is NVVM's, `llvm.nvvm.` become `nvvm_` and dots `_`. No kernel of daskclust uses operations of warps. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include "lane.h"

void lane_meet_block(void);

/* -------------------------------------------------------------------------------------------------------- barriers */
void nvvm_barrier0(void) { lane_meet_block(); }
/* All threads of the device share one thread of the host, which sees what it wrote. */
void nvvm_membar_gl(void) {}
void nvvm_membar_cta(void) {}
void nvvm_membar_sys(void) {}
unsigned nvvm_dynamic_smem_size(void) { return (unsigned)dynamic_shared; }

/* ------------------------------------------------------------------------------------------------------- libdevice */
double __nv_dmul_rn(double a, double b) { return a * b; }
float __nv_fmul_rn(float a, float b) { return a * b; }
double __nv_dadd_rn(double a, double b) { return a + b; }
float __nv_fadd_rn(float a, float b) { return a + b; }
#define ONE(name) double __nv_##name(double a) { return name(a); } float __nv_##name##f(float a) { return name##f(a); }
#define TWO(name) \
    double __nv_##name(double a, double b) { return name(a, b); } \
    float __nv_##name##f(float a, float b) { return name##f(a, b); }
ONE(sqrt) ONE(rint) ONE(floor) ONE(ceil) ONE(trunc) ONE(fabs) ONE(exp) ONE(log) ONE(log2) ONE(log10) ONE(log1p)
ONE(expm1) ONE(cos) ONE(sin) ONE(tan) ONE(atan) ONE(tanh)
TWO(pow) TWO(fmin) TWO(fmax) TWO(fmod) TWO(atan2) TWO(hypot) TWO(copysign)
double __nv_ldexp(double a, int b) { return ldexp(a, b); }
float __nv_ldexpf(float a, int b) { return ldexpf(a, b); }
int __nv_isnand(double a) { return a != a; }
int __nv_isnanf(float a) { return a != a; }
int __nv_isinfd(double a) { return isinf(a) != 0; }
int __nv_isinff(float a) { return isinf(a) != 0; }
int __nv_isfinited(double a) { return isfinite(a) != 0; }
int __nv_finitef(float a) { return isfinite(a) != 0; }
int __nv_ffs(int a) { return __builtin_ffs(a); }
int __nv_ffsll(int64_t a) { return __builtin_ffsll(a); }
int __nv_popc(int a) { return __builtin_popcount((unsigned)a); }
int __nv_popcll(int64_t a) { return __builtin_popcountll((uint64_t)a); }
int __nv_clz(int a) { return a ? __builtin_clz((unsigned)a) : 32; }
int __nv_clzll(int64_t a) { return a ? __builtin_clzll((uint64_t)a) : 64; }
int __nv_abs(int a) { return abs(a); }
int64_t __nv_llabs(int64_t a) { return llabs(a); }
int __nv_max(int a, int b) { return a > b ? a : b; }
int __nv_min(int a, int b) { return a < b ? a : b; }
int64_t __nv_llmax(int64_t a, int64_t b) { return a > b ? a : b; }
int64_t __nv_llmin(int64_t a, int64_t b) { return a < b ? a : b; }
