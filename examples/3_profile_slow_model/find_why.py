"""A model that is slow for a reason: profile it, read what the report finds, mend it, and compare."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils.parametrizations import weight_norm
from torch.nn.utils.parametrize import remove_parametrizations

from executorch_tensorrt import Input, Module, export
from executorch_tensorrt.profiling import Session, capture, processors


class Vocoder(torch.nn.Module):
    """Frames of a mel spectrogram, float32 [1, 20, S], to samples of sound, float32 [1, 1, S]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.enter = torch.nn.Conv1d(20, channels, 3, padding=1)
        self.body = weight_norm(torch.nn.Conv1d(channels, channels, 7, padding=3))  # as it was trained
        self.leave = torch.nn.Conv1d(channels, 1, 3, padding=1)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.enter(frames))
        hidden = torch.relu(self.body(hidden))
        return torch.tanh(self.leave(hidden))


def export_and_profile(model: Vocoder, program: Path, frames: np.ndarray, folder: Path) -> Session:
    """What `export` and `etrt profile` do on the command line; the session is in `folder`."""

    def shape(size: int) -> tuple[int, int, int]:
        return (1, 20, size)

    longest = frames.shape[2]
    ranges = [{"min_shape": shape(1), "opt_shape": shape(longest), "max_shape": shape(longest)}]
    export(model, [Input(profiles=ranges)]).save(program)
    with torch.no_grad():
        expected = model(torch.from_numpy(frames)).numpy()
    (samples,) = Module(program).forward(frames)
    print(f"{program}: largest difference from PyTorch {np.abs(samples - expected).max():.1e}")
    return capture(program, (frames,), runs=20, output=folder)


def show(session: Session) -> None:
    """The same as in `etrt report`: how long a call takes, the layers that take most of it, and the findings."""
    (spread,) = processors.spread(session)
    print(f"  a call takes {spread.wall.median_us / 1e3:.2f} ms")
    for layer in processors.layers(session)[:3]:
        print(f"  {layer.share:6.1%} of all layer time: {layer.name}")
    for finding in processors.findings(session):
        print(f"  {finding.fact}\n    {finding.advice}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--channels", type=int, default=64, help="width of the model")
    parser.add_argument("--frames", type=int, default=100, help="size of a call")
    parser.add_argument("-o", "--output", type=Path, default=Path(), help="folder for programs and sessions")
    arguments = parser.parse_args()
    output = arguments.output
    output.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(0)
    model = Vocoder(arguments.channels).eval()
    frames = np.random.default_rng(0).standard_normal((1, 20, arguments.frames), np.float32)

    before = export_and_profile(model, output / "slow.pte", frames, output / "before")
    show(before)

    # The finding names `body`: its weight is computed in every call, so no kernel can be prepared for it. It is always
    # the same, so compute it now.
    remove_parametrizations(model.body, "weight")

    after = export_and_profile(model, output / "fixed.pte", frames, output / "after")
    show(after)
    (change,) = [change for change in processors.compare(before, after).changes if change.kind == "run"]
    times = change.before.median_us, change.after.median_us
    print(f"{times[0] / 1e3:.2f} ms before, {times[1] / 1e3:.2f} ms after: {times[0] / times[1]:.0f} times as fast")


if __name__ == "__main__":
    main()
