#!/usr/bin/env bash
# Everything that needs a GPU, on a machine that has one; no network is used. Nobody has run it on a GPU yet.
#
#     make .venv/.dev-installed && .venv/bin/pip install "seedrank[gpu-cu13]"     # or gpu-cu12, by the driver;
#                                                   cugraph-cu13 or cugraph-cu12 for the tests of cuGraph as well
#     benchmarks/gpu/run.sh
#
# Takes some minutes: what the probe says, the tests that have a GPU among their backends, NVIDIA's memory and race
# checks on a small run where compute-sanitizer is on PATH, and the times (benchmarks/results/gpu.json,
# gpu_recall.json).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=.venv/bin/python

.venv/bin/seedrank info
$python benchmarks/gpu/compile.py
$python -m pytest -q -k "gpu or cugraph" tests/test_kernels tests/test_jobs/test_gpu_probe.py \
    tests/test_jobs/test_gpu_recall.py tests/test_jobs/test_gpu_vectors.py \
    tests/test_jobs/test_cugraph.py tests/test_cugraph_signatures.py
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck initcheck synccheck; do
        for run in scenario recall_scenario; do
            PYTHONPATH=tests/cuda_shim compute-sanitizer --tool "$tool" --error-exitcode 9 $python -m "$run"
        done
    done
else
    echo "compute-sanitizer is not on PATH: no memory and race checks" >&2
fi
$python benchmarks/gpu/times.py
$python benchmarks/gpu/recall_times.py
