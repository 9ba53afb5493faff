"""Random sequences of calls, from a range of seeds.

    python -m sequences device 1 1000 LIBCUDART FOLDER
    python -m sequences cpu 1 1000 FOLDER

LIBCUDART is the fake CUDA, and FOLDER has the programs that `sequences.programs` exports.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence as Several
from pathlib import Path

from sequences.drawing import Traits, draw
from sequences.running import Kind, Runner, main
from sequences.steps import Sequence

logging.getLogger("executorch_tensorrt").setLevel(logging.CRITICAL)

DEVICE = Traits()
CPU = Traits(where=("cpu",), has_device=False, has_failures=False)


def device(options: Several[str]) -> Kind:
    cudart, folder = options

    def runner() -> Runner:
        from sequences.fake_device import FakeDevice
        from sequences.playing import play

        fake = FakeDevice(cudart)
        programs = {where: Path(folder) / f"{where}.pte" for where in DEVICE.where}

        def run(sequence: Sequence) -> None:
            fake.begin(sequence.narrows_int64)
            play(sequence, programs[sequence.where], fake)

        return run

    return Kind(lambda seed: draw(seed, DEVICE), runner)


def cpu(options: Several[str]) -> Kind:
    (folder,) = options

    def runner() -> Runner:
        from sequences.playing import play

        program = Path(folder) / "cpu.pte"
        return lambda sequence: play(sequence, program, None)

    return Kind(lambda seed: draw(seed, CPU), runner)


if __name__ == "__main__":
    main({"device": device, "cpu": cpu})
