#!/usr/bin/env bash
# The first hour on a new GPU, in the repository, with daskclust[gpu,test] installed (docs/howto/gpu.md):
#   bash tests/gpu/first_contact.sh env        # versions, first kernels, speed of memory
#   bash tests/gpu/first_contact.sh danger     # what may hang or be wrong: union-find, streams, barriers of the grid
#   bash tests/gpu/first_contact.sh tests      # all tests marked gpu; then options of pytest, such as -k clue
#   bash tests/gpu/first_contact.sh time       # all systems at the sizes of the papers, with the time of each kernel
#   bash tests/gpu/first_contact.sh sanitize   # compute-sanitizer on small runs, ncu on CLUE
# Each step ends within 10 minutes and needs no network. What it prints is in first_contact/STEP.log, too.
# A line FAILED says what is probably wrong. MOST=1e6 makes no benchmark larger than that.
set -uo pipefail
cd "$(dirname "$0")/../.."
step=${1:-} python=${PYTHON:-python} most=${MOST:-3.7e7}
export PYTHONPATH=$PWD PYTHONUNBUFFERED=1
mkdir -p first_contact
exec > >(tee "first_contact/${step:-none}.log") 2>&1

run() { # run SECONDS REMEDY COMMAND...
    printf -- '---- %s\n' "${*:3}"
    timeout -k 5 "$1" "${@:3}"
    local code=$?
    [ $code -eq 0 ] || echo "FAILED, code $code (124: no end in $1 s). $2"
}

try() { # try SECONDS REMEDY OPTIONS...: tests on the GPU that are chosen by options of pytest
    run "$1" "$2" "$python" -m pytest -m gpu -q -x tests/gpu "${@:3}"
}

tool() { # tool NAME FOLDER...: on the path or in one of these folders
    command -v "$1" || ls -d "${@:2}" 2> /dev/null | sed "s,$,/$1," | tail -1
}

case $step in
env)
    run 60 "No driver: install NVIDIA's, 580 or newer for CUDA 13, 525 for CUDA 12." nvidia-smi
    run 60 "Install the package: pip install '.[gpu,test]'." "$python" -m daskclust info
    try 300 "libnvvm, libdevice: set CUDA_HOME to the folder above nvvm/. UNSUPPORTED_PTX_VERSION, INVALID_IMAGE: nvvm is newer
       than the driver; set CUDA_HOME to an older toolkit. AttributeError in numba.cuda: another numba-cuda, see pyproject.toml." \
        -k few_points
    run 60 "First make the tests pass." "$python" tests/bench clue --device cuda --sizes 1e5
    ;;
danger)
    try 120 "No end: threads see old parents; look at atomic_load in core/device/cuda.py." -k union_find
    try 120 "Other labels: a launch or a copy is not on CuPy's current stream." -k stream_of_its_own
    try 200 "No end: blocks that wait for each other are not all on the device; let hca/levels.py take one block a team." \
        -k takes_the_whole_device
    try 120 "Illegal address: again with CUDA_LAUNCH_BLOCKING=1, then the step sanitize." -k test_in_memory
    ;;
tests)
    run 580 "All fail alike: the step env. Some: again with -n 0 -x -k NAME; an illegal address fails all tests after it." \
        "$python" -m pytest -m gpu tests -n 8 -q --maxfail 40 "${@:2}"
    ;;
time)
    run 580 "Out of memory: MOST=1e7. No end: MOST=1e6, and look at the slowest kernel in the record." \
        "$python" tests/bench all --device cuda --sizes "$most" -o first_contact/bench.json
    ;;
sanitize)
    sanitizer=$(tool compute-sanitizer /usr/local/cuda*/bin /usr/local/cuda*/compute-sanitizer)
    for each in "memcheck --report-api-errors no" synccheck initcheck racecheck; do # libraries ask for what a driver lacks
        run 140 "Not found: it comes with the CUDA toolkit. Errors: the log names kernel and thread." \
            "$sanitizer" --tool $each --error-exitcode 1 --print-limit 5 \
            "$python" -m pytest -m gpu -q tests/gpu/test_gpu_laws.py -k 'test_in_memory and float32'
    done
    run 90 "ERR_NVGPUCTRPERM: the administrator must allow performance counters. Not found: it comes with the toolkit." \
        "$(tool ncu /opt/nvidia/nsight-compute/* /usr/local/cuda*/bin)" --set basic --section MemoryWorkloadAnalysis \
        -k regex:'density|nearest' -c 6 "$python" tests/bench clue --device cuda --sizes 2e5 --repeats 1
    ;;
*) sed -n '2,10p' "$0" ;;
esac
