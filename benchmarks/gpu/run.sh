#!/usr/bin/env bash
# Everything that needs a GPU, on a machine that has one; no network is used. Nobody has run it on a GPU yet.
#
#     make .venv/.dev-installed && .venv/bin/pip install "seedrank[gpu-cu13]"     # or gpu-cu12, by the driver;
#                                                   cugraph-cu13 or cugraph-cu12 for the tests of cuGraph as well
#     benchmarks/gpu/run.sh                # ten minutes at most
#     benchmarks/gpu/run.sh --quick        # whether all of it runs: small graphs, few tests; a minute or two
#     benchmarks/gpu/run.sh --minutes 30   # for all stages together
#     PYTHON=python3 benchmarks/gpu/run.sh # an interpreter that has CuPy, the package and what its tests need
#
# A stage that fails, or that is cut at its limit, leaves the others and their figures alone; what is not installed
# (compute-sanitizer, which pip calls nvidia-cuda-sanitizer-api, 18 MB; torch; cuGraph) is left out. Figures:
# benchmarks/results/gpu_*.json, written after every single one; the tables of benchmarks/README.md: gpu_tables.md beside
# them; graphs, 2 GB, in TMPDIR until the end. Exit status: 0 every stage ended well; 1 one failed; 3 none failed, but one
# was cut or not begun; 4 there is no GPU that works, and why; 2 usage.
#
# Seconds to expect on one H200 and 16 cores, estimated: the CPU's share from times on two busy cores (42 s of one core
# for RMAT 20 and its store; RMAT 22 is four and a half times that), the GPU's from bytes.
#
#     graphs     230   one core, beside the stages from compile to the sanitizers: RMAT 20 40 s, RMAT 22 190 s
#     probe       10   CuPy is imported, kernels are compiled (2 to 4 s, once)
#     compile     20   CPU only
#     tests      150   the same tests take 90 s of one core on the stand-in, whose kernels run on the CPU; on a GPU every
#                      process that tries it imports CuPy and makes a context, 3 s each
#     steps       40   graph 10 s; 4 widths x 66 steps of 4 to 30 ms; cuSPARSE some times that
#     selection   30   graph 10 s; NumPy sorts for 10 s
#     jobs 20     60   2,048 queries: 32 blocks; Numba compiles for the CPU for 20 to 45 s, once, which then takes 8 s
#     sanitizers 120   8 runs of 300 to 1,100 launches; most of it is imports, slowed down as well
#     jobs 22     40   512 queries: 8 blocks; the CPU 10 s
#     recall      90   graph 15 s; Numba compiles for 20 s; walks and vectors by 16 cores
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=${PYTHON:-.venv/bin/python}
here=benchmarks/gpu

minutes=10 prefix=gpu_ small=20 large=22 few=512 many=2048 vectors=200000
# Not those whose kernels run on the CPU or whose driver is made up, wherever they run.
tests=(--ignore tests/test_kernels/test_gpu_kernels.py --ignore-glob "tests/test_kernels/test_gpu_wide_*" tests/test_kernels
    tests/test_jobs/test_gpu_*.py tests/test_jobs/test_cugraph.py tests/test_cugraph_signatures.py
    tests/test_cupy_signatures.py)
which_tests="(gpu or cugraph or cupy) and not test_drivers"
while (($#)); do
    case $1 in
    --quick)
        prefix=quick_ small=10 large=12 few=64 many=128 vectors=2000
        tests=(tests/test_kernels/test_gpu_backend.py) which_tests="every_width"
        shift
        ;;
    --minutes)
        minutes=${2-}
        [[ $minutes =~ ^[0-9]+$ ]] || { echo "--minutes takes a whole number" >&2; exit 2; }
        shift 2
        ;;
    *)
        echo "usage: run.sh [--quick] [--minutes N]" >&2
        exit 2
        ;;
    esac
done

# The last seconds are for the tables.
deadline=$((minutes * 60 - 10)) failed=0 cut=0 summary=() stages=()
folder=$(mktemp -d)
preparing='' running=''
# timeout ends all that it has started when it is ended.
trap 'for one in $preparing $running; do kill "$one" 2>/dev/null; done; rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

note() { # NAME SECONDS RESULT
    summary+=("$(printf '%-28s %4d s  %s' "$@")")
    stages+=("$(printf '{"stage": "%s", "seconds": %d, "result": "%s"}' "$@")")
    printf -- '-- %s: %s\n' "$1" "$3"
}

stage() { # NAME LIMIT COMMAND...
    local name=$1 limit=$2 status=0 started=$SECONDS
    shift 2
    ((limit <= deadline - SECONDS)) || limit=$((deadline - SECONDS))
    if ((limit < 1)); then
        cut=1
        note "$name" 0 "not begun: the time is used up"
        return
    fi
    printf '\n== %s (at most %d s)\n' "$name" "$limit"
    timeout --kill-after=5 "$limit" "$@" </dev/null &
    running=$! # waited for, so that a signal is heeded at once
    wait "$running" || status=$?
    running=''
    case $status in
    0) note "$name" $((SECONDS - started)) "ended well" ;;
    124 | 137)
        cut=1
        note "$name" $((SECONDS - started)) "CUT at its limit of $limit s"
        ;;
    *)
        failed=1
        note "$name" $((SECONDS - started)) "FAILED with status $status"
        ;;
    esac
}

prepared() { # SCALE: waits until the graph is there
    until [[ -e $folder/rmat$1.ready ]]; do
        if ! kill -0 "$preparing" 2>/dev/null; then
            [[ -e $folder/rmat$1.ready ]] && return
            cat "$folder/prepare.log"
            failed=1
            note "rmat$1" 0 "FAILED: the graph was not made"
            return 1
        fi
        if ((SECONDS >= deadline)); then
            cut=1
            note "rmat$1" 0 "CUT: the time was used up before the graph was made"
            return 1
        fi
        sleep 0.2
    done
}

stage probe 90 "$python" -m seedrank info
if ! "$python" -c "from seedrank.kernels.backends.resolver import resolve_backend as r; r('gpu')" 2>"$folder/reason"; then
    tail -n 1 "$folder/reason" >&2
    exit 4
fi
"$python" $here/prepare.py --folder "$folder" --scales $small $large >"$folder/prepare.log" 2>&1 &
preparing=$!

stage compile 60 "$python" $here/compile.py
stage tests 240 "$python" -m pytest -q -p no:cacheprovider -k "$which_tests" "${tests[@]}"
if prepared $small; then
    stage steps 90 "$python" $here/step_times.py --scales $small --cache "$folder" --name ${prefix}steps
    stage selection 60 "$python" $here/selection_times.py --scales $small --cache "$folder" --name ${prefix}selection
    stage "jobs rmat$small" 120 "$python" $here/job_times.py --folder "$folder" --scales $small --queries $many \
        --name ${prefix}jobs_$small
fi
# On PATH with the CUDA toolkit, else where pip installs it.
find_it="import pathlib, sysconfig
print(next(pathlib.Path(sysconfig.get_path('purelib')).glob('nvidia/*/bin/compute-sanitizer'), ''))"
sanitizer=$(command -v compute-sanitizer || "$python" -c "$find_it")
if [[ -n $sanitizer ]]; then
    for tool in memcheck racecheck synccheck initcheck; do
        for run in scenario recall_scenario; do
            stage "$tool $run" 45 "$sanitizer" --tool $tool --error-exitcode 9 "$python" $here/sanitized.py $run
        done
    done
else
    note sanitizers 0 "left out: compute-sanitizer is not installed"
fi
if prepared $large; then
    stage "jobs rmat$large" 120 "$python" $here/job_times.py --folder "$folder" --scales $large --queries $few \
        --name ${prefix}jobs_$large
fi
if prepared $small; then
    stage recall 150 "$python" $here/recall_times.py --scales $small --cache "$folder" --vectors $vectors \
        --queries $many --name ${prefix}recall
fi

printf '\n'
"$python" $here/table.py --prefix $prefix | tee benchmarks/results/${prefix}tables.md
{
    printf '[\n'
    printf ' %s,\n' "${stages[@]}" | sed '$ s/,$//'
    printf ']\n'
} >benchmarks/results/${prefix}stages.json
printf '\n'
printf '%s\n' "${summary[@]}"
if ((failed)); then exit 1; fi
if ((cut)); then exit 3; fi
