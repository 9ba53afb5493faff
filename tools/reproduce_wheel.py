"""Builds the wheel of this commit twice, in folders of other names and at other times, and compares the bytes.

It takes some minutes. Give the same interpreter and compiler both times; a cache of compilers must not help.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

REPOSITORY = Path(__file__).resolve().parents[1]
SETTINGS = {
    key: value for key, value in os.environ.items() if "COMPILER_LAUNCHER" not in key and key != "SOURCE_DATE_EPOCH"
}


def build(folder: Path) -> Path:
    subprocess.run(["git", "clone", "-q", str(REPOSITORY), str(folder)], check=True)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "-w", str(folder / "dist"), str(folder)], check=True, env=SETTINGS)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        wheels = [build(Path(folder) / name) for name in ("a", "a-longer/name of a folder")]
        digests = [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels]
        print(*digests, sep="\n")
        if digests[0] != digests[1]:
            one, other = (ZipFile(wheel) for wheel in wheels)
            differing = [name for name in one.namelist() if one.read(name) != other.read(name)]
            sys.exit(f"differing: {', '.join(differing) or 'order or times of files'}")


if __name__ == "__main__":
    main()
