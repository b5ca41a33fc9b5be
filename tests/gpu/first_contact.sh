#!/usr/bin/env bash
# The first hour on a new GPU, in the repository, with daskclust[gpu,test] installed (docs/howto/gpu.md):
#   bash tests/gpu/first_contact.sh env        # versions, the first kernel, speed of memory, cost of a launch
#   bash tests/gpu/first_contact.sh danger     # what may hang or be wrong: union-find, streams, barriers of the grid
#   bash tests/gpu/first_contact.sh tests      # all tests marked gpu; then options of pytest, such as -k clue
#   bash tests/gpu/first_contact.sh time       # all systems at the sizes of the papers, with the time of each kernel
#   bash tests/gpu/first_contact.sh sanitize   # compute-sanitizer on small runs, ncu on CLUE
# Each step ends within 10 minutes and needs no network. What it prints is in first_contact/STEP.log, too.
# A line FAILED says what is probably wrong. SCALE=0.1 makes all sizes a tenth.
set -uo pipefail
cd "$(dirname "$0")/../.."
step=${1:-} python=${PYTHON:-python} scale=${SCALE:-1}
export PYTHONPATH=$PWD PYTHONUNBUFFERED=1
mkdir -p first_contact
exec > >(tee "first_contact/${step:-none}.log") 2>&1

run() { # run SECONDS REMEDY COMMAND...
    printf -- '---- %s\n' "${*:3}"
    timeout -k 5 "$1" "${@:3}"
    local code=$?
    [ $code -eq 0 ] || echo "FAILED, code $code (124: no end in $1 s). $2"
}

part() { # part SECONDS REMEDY NAME [SCALE]
    run "$1" "$2" "$python" tests/gpu/first_contact.py "$3" "${4:-$scale}"
}

tool() { # tool NAME FOLDER...: on the path or in one of these folders
    command -v "$1" || ls -d "${@:2}" 2> /dev/null | sed "s,$,/$1," | tail -1
}

case $step in
env)
    run 60 "No driver: install NVIDIA's, 580 or newer for CUDA 13, 525 for CUDA 12." nvidia-smi
    run 60 "Install the package: pip install '.[gpu,test]'." "$python" -m daskclust info
    part 300 "libnvvm, libdevice: set CUDA_HOME to the folder above nvvm/. UNSUPPORTED_PTX_VERSION, INVALID_IMAGE: nvvm is newer
       than the driver; set CUDA_HOME to an older toolkit. AttributeError in numba.cuda: another numba-cuda, see pyproject.toml." first_kernel
    ;;
danger)
    part 120 "No end: threads see old parents; look at atomic_load in core/device/cuda.py." union_find
    part 120 "DIFFERENT: a launch or a copy is not on CuPy's current stream." streams
    part 200 "No end: blocks that wait for each other are not all on the device; let hca/levels.py take one block a team." barrier
    part 120 "Illegal address: again with CUDA_LAUNCH_BLOCKING=1, then the step sanitize." small
    ;;
tests)
    run 580 "All fail alike: the step env. Some: again with -n 0 -x -k NAME; an illegal address fails all tests after it." \
        "$python" -m pytest -m gpu tests -n 8 -q --maxfail 40 "${@:2}"
    ;;
time)
    for name in clue fof events hca; do
        part 145 "Out of memory: SCALE=0.5. No end: SCALE=0.1, and look at the slowest kernel." $name
    done
    ;;
sanitize)
    part 100 "First the step danger." small 0.1 # fills the cache of kernels
    sanitizer=$(tool compute-sanitizer /usr/local/cuda*/bin /usr/local/cuda*/compute-sanitizer)
    for each in memcheck synccheck initcheck racecheck; do
        run 100 "Not found: it comes with the CUDA toolkit. Errors: the log names kernel and thread." \
            "$sanitizer" --tool $each --error-exitcode 1 --print-limit 5 "$python" tests/gpu/first_contact.py small 0.1
    done
    run 90 "ERR_NVGPUCTRPERM: the administrator must allow performance counters. Not found: it comes with the toolkit." \
        "$(tool ncu /opt/nvidia/nsight-compute/* /usr/local/cuda*/bin)" --set basic --section MemoryWorkloadAnalysis \
        -k regex:'density|nearest' -c 6 "$python" tests/gpu/first_contact.py clue 0.2
    ;;
*) sed -n '2,10p' "$0" ;;
esac
