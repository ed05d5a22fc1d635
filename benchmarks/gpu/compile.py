"""Compile the kernels for several generations of GPUs, none of which has to be there; print registers and spills.

    python benchmarks/gpu/compile.py

Uses nvcc where it is on PATH (registers, spills, shared memory of every kernel), else NVRTC through CuPy (whether it
compiles). Fails where a kernel does not compile.
"""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

from seedrank.kernels._gpu.source import OPTIONS, SOURCES, Group, kernel_source

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
USAGE = re.compile(
    r"Function properties for (?P<name>\w+)\n.*?(?P<spilled>\d+) bytes spill stores.*?\n.*?Used (?P<registers>\d+) "
    r"registers(?:.*?(?P<shared>\d+) bytes smem)?"
)


def with_nvcc(nvcc: str, architecture: str, group: Group, folder: Path) -> None:
    """Compile with nvcc and print a line for every kernel."""
    source = folder / "kernels.cu"
    source.write_text(kernel_source(group))
    command = [nvcc, *OPTIONS, f"-arch={architecture}", "-Xptxas", "-v", "-cubin", str(source), "-o", "/dev/null"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    for kernel in sorted(USAGE.finditer(done.stderr), key=lambda match: match["name"]):
        print(
            f"{architecture:8} {kernel['name']:24} {kernel['registers']:>4} registers {kernel['spilled']:>4} bytes "
            f"spilled {kernel['shared'] or 0:>6} bytes shared"
        )


def with_nvrtc(architecture: str, group: Group) -> None:
    """Compile as CuPy does, and print the size of the result."""
    nvrtc = importlib.import_module("cupy").cuda.nvrtc
    program = nvrtc.createProgram(kernel_source(group), "kernels.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*OPTIONS, f"--gpu-architecture={architecture}"))
    except nvrtc.NVRTCError:
        sys.exit(nvrtc.getProgramLog(program))
    print(f"{architecture:8} {group:10} {len(nvrtc.getCUBIN(program)):>8} bytes of code")


if __name__ == "__main__":
    found = shutil.which("nvcc")
    with tempfile.TemporaryDirectory() as made:
        for each, kernels in product(ARCHITECTURES, SOURCES):
            if found:
                with_nvcc(found, each, kernels, Path(made))
            else:
                with_nvrtc(each, kernels)
