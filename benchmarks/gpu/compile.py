"""Compile the kernels for several generations of GPUs, none of which has to be there; print registers and spills.

    python benchmarks/gpu/compile.py                       # sm_75, 80, 90, 100 and 120
    python benchmarks/gpu/compile.py --architectures sm_90

Uses NVRTC with the options that CuPy gives it, where CuPy is installed, else nvcc; ``--nvrtc`` and ``--nvcc`` insist.
Fails where a kernel does not compile. Takes some 5 s a generation.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

from seedrank.kernels._gpu.source import OPTIONS, SOURCES, Group, kernel_source

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")

#: What CuPy adds to the options of every kernel; of options that contradict each other, the last one counts.
FROM_CUPY = ("-ftz=true",)
FROM_CUPY_TO_NVRTC = ("--device-as-default-execution-space",)

USAGE = re.compile(
    r"Function properties for (?P<name>\w+)\n.*?(?P<spilled>\d+) bytes spill stores.*?\n.*?Used (?P<registers>\d+) "
    r"registers(?:[^\n]*?(?P<shared>\d+) bytes smem)?"
)


def with_nvcc(nvcc: str, architecture: str, group: Group) -> str:
    """Compile with nvcc, and return what ptxas says of the kernels."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernels.cu"
        source.write_text(kernel_source(group), encoding="utf-8")
        options = (*OPTIONS, *FROM_CUPY, f"-arch={architecture}", "-Xptxas", "-v", "-cubin", "-o", "/dev/null")
        done = subprocess.run([nvcc, *options, str(source)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stderr


def with_nvrtc(architecture: str, group: Group) -> str:
    """Compile as CuPy does, and return what ptxas says of the kernels."""
    nvrtc = importlib.import_module("cupy").cuda.nvrtc
    program = nvrtc.createProgram(kernel_source(group), "kernels.cu", (), ())
    options = (*OPTIONS, *FROM_CUPY, f"-arch={architecture}", *FROM_CUPY_TO_NVRTC, "--ptxas-options=-v")
    try:
        nvrtc.compileProgram(program, options)
    except nvrtc.NVRTCError:
        sys.exit(nvrtc.getProgramLog(program))
    return str(nvrtc.getProgramLog(program))


def main() -> None:
    """Compile and print a line for every kernel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architectures", nargs="+", default=ARCHITECTURES)
    compilers = parser.add_mutually_exclusive_group()
    compilers.add_argument("--nvrtc", action="store_true")
    compilers.add_argument("--nvcc", action="store_true")
    arguments = parser.parse_args()
    nvcc = shutil.which("nvcc")
    by_nvrtc = arguments.nvrtc or (not arguments.nvcc and importlib.util.find_spec("cupy_backends") is not None)
    if not by_nvrtc and nvcc is None:
        sys.exit("neither CuPy nor nvcc is here")
    groups: tuple[Group, ...] = tuple(SOURCES)
    for architecture, group in product(arguments.architectures, groups):
        said = with_nvrtc(architecture, group) if by_nvrtc else with_nvcc(str(nvcc), architecture, group)
        kernels = sorted(USAGE.finditer(said), key=lambda match: match["name"])
        if len(kernels) != len(re.findall("Compiling entry function", said)) or not kernels:
            sys.exit(f"what the compiler says is not understood:\n{said}")
        for kernel in kernels:
            print(
                f"{architecture:8} {kernel['name']:24} {kernel['registers']:>4} registers {kernel['spilled']:>4} bytes "
                f"spilled {kernel['shared'] or 0:>6} bytes shared"
            )


if __name__ == "__main__":
    main()
