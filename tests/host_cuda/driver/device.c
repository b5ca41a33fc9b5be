/* What kernels call in place of NVVM's intrinsics and of libdevice. Special registers are read from `lane_ids`.

A name is NVVM's, `llvm.nvvm.` become `nvvm_` and dots `_`. Those that return two values give the second one in bit 32. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include "lane.h"

int lane_meet_block(int value);
const uint64_t *lane_meet_warp(unsigned lanes, uint64_t value);
void nvvm_spin(void);

/* -------------------------------------------------------------------------------------------------------- barriers */
void nvvm_barrier0(void) { lane_meet_block(0); }
int nvvm_barrier0_popc(int value) { return lane_meet_block(value); }
int nvvm_barrier0_and(int value) { return lane_meet_block(value) == (int)volume(lane_ids.threads); }
int nvvm_barrier0_or(int value) { return lane_meet_block(value) > 0; }
void nvvm_bar_warp_sync(unsigned lanes) { lane_meet_warp(lanes, 0); }
/* All threads of the device share one thread of the host, which sees what it wrote. */
void nvvm_membar_gl(void) {}
void nvvm_membar_cta(void) {}
void nvvm_membar_sys(void) {}
unsigned nvvm_dynamic_smem_size(void) { return (unsigned)dynamic_shared; }

/* ----------------------------------------------------------------------------------------------------------- warps */
static unsigned my_lane(void) {
    Size t = lane_ids.thread, n = lane_ids.threads;
    return (t.x + n.x * (t.y + n.y * t.z)) % WARP;
}

unsigned nvvm_read_ptx_sreg_laneid(void) { return my_lane(); }
unsigned nvvm_lanemask_lt(void) { return (1u << my_lane()) - 1; }

static uint64_t pair(unsigned first, int second) { return first | (uint64_t)(second != 0) << 32; }

/* PTX's shfl.sync: mode 0 up, 1 down, 2 butterfly, 3 index, numbered by NVVM as idx 0, up 1, down 2, bfly 3. */
uint64_t lane_shfl(unsigned lanes, int mode, unsigned value, unsigned by, unsigned clamp) {
    const uint64_t *seen = lane_meet_warp(lanes, value);
    int lane = (int)my_lane(), last = (int)(clamp & 31), segment = (int)(clamp >> 8 & 31), b = (int)(by & 31);
    int most = (lane & segment) | (last & ~segment), least = lane & segment, from, fits;
    if (mode == 1) fits = (from = lane - b) >= most;
    else if (mode == 2) fits = (from = lane + b) <= most;
    else if (mode == 3) fits = (from = lane ^ b) <= most;
    else fits = (from = least | (b & ~segment)) <= most;
    return pair((unsigned)seen[fits ? from : lane], fits);
}

static unsigned lanes_here(unsigned lanes) {
    unsigned rest = volume(lane_ids.threads);
    Size t = lane_ids.thread, n = lane_ids.threads;
    rest -= (t.x + n.x * (t.y + n.y * t.z)) / WARP * WARP;
    return rest < WARP ? lanes & ((1u << rest) - 1) : lanes;
}

/* Mode 0 all, 1 any, 2 all the same, 3 ballot. */
uint64_t lane_vote(unsigned lanes, int mode, int value) {
    const uint64_t *seen = lane_meet_warp(lanes, value != 0);
    unsigned ballot = 0, all = lanes_here(lanes);
    for (unsigned k = 0; k < WARP; k++) ballot |= (unsigned)(all >> k & 1 && seen[k]) << k;
    int answers[] = {ballot == all, ballot != 0, ballot == all || !ballot, 0};
    return pair(mode == 3 ? ballot : 0, answers[mode & 3]);
}

static unsigned same_as(unsigned lanes, uint64_t value) {
    const uint64_t *seen = lane_meet_warp(lanes, value);
    unsigned same = 0;
    for (unsigned k = 0; k < WARP; k++) same |= (unsigned)(lanes_here(lanes) >> k & 1 && seen[k] == value) << k;
    return same;
}

unsigned nvvm_match_any_sync_i32(unsigned lanes, unsigned value) { return same_as(lanes, value); }
unsigned nvvm_match_any_sync_i64(unsigned lanes, uint64_t value) { return same_as(lanes, value); }

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
