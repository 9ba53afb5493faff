"""Resolves requirements/*.in anew, for every platform and Python from 3.11, with the hashes of all files of a version.

What is pinned stays as it is where it can; `--upgrade` takes the newest. Packages that only torch's CUDA build wants go
into torch-cuda.txt: `make build` installs them where pip has taken that build.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements"
UV = Path(sys.executable).parent / "uv"
OF_CUDA = re.compile(r"(nvidia|cuda)-|triton==")
# Files of a version that lie on an index of their own: the build without CUDA, for CPython 3.11 on Linux x86-64.
MORE_HASHES = {"torch==2.13.0": ("6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",)}


def resolve(source: Path, pinned: str, *options: str) -> list[str]:
    """A block of lines for each package."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "pinned.txt"
        output.write_text(pinned)
        command = [UV, "pip", "compile", source, "-o", output, "--universal", "--python-version", "3.11"]
        command += ["--generate-hashes", "--no-annotate", "--no-header", "--quiet", *options]
        subprocess.run(command, check=True)
        return re.findall(r"^\S.*\n(?:    .*\n)+", output.read_text(), re.MULTILINE)


def with_more_hashes(blocks: list[str]) -> list[str]:
    for pin, hashes in MORE_HASHES.items():
        more = "".join(f" \\\n    --hash=sha256:{digest}" for digest in hashes)
        (index,) = (index for index, block in enumerate(blocks) if block.startswith(pin + " "))
        blocks[index] = blocks[index].rstrip("\n") + more + "\n"
    return blocks


def main() -> None:
    files = {name: REQUIREMENTS / f"{name}.txt" for name in ("pip", "dev", "torch-cuda")}
    pinned = {name: path.read_text() if path.exists() else "" for name, path in files.items()}
    files["pip"].write_text("".join(resolve(REQUIREMENTS / "pip.in", pinned["pip"], *sys.argv[1:])))
    blocks = resolve(REQUIREMENTS / "dev.in", pinned["dev"] + pinned["torch-cuda"], *sys.argv[1:])
    of_cuda = [block for block in blocks if OF_CUDA.match(block)]
    files["torch-cuda"].write_text("".join(of_cuda))
    files["dev"].write_text("".join(with_more_hashes([block for block in blocks if block not in of_cuda])))


if __name__ == "__main__":
    main()
