"""What profiling costs: a call at level off against one built without event tracing, a phase event, a layer record."""

import json
import statistics
import subprocess
import sys
from pathlib import Path

import nanobind
from delegate_call import write_models
from timing import BUILD, REPOSITORY, microbench, report

RUNS = 9


def build_without_tracing() -> Path:
    """The microbenchmark against a library with event tracing compiled out; kept between runs."""
    folder = BUILD / "no_tracing"
    options = ["-DETRT_EVENT_TRACING=OFF", "-DETRT_TESTS=ON", "-DSKBUILD_PROJECT_VERSION=0.0", "-G", "Ninja"]
    scripts = Path(sys.executable).parent
    places = [
        f"-Dnanobind_DIR={nanobind.cmake_dir()}",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DCMAKE_MAKE_PROGRAM={scripts / 'ninja'}",
    ]
    configure = [scripts / "cmake", "-S", REPOSITORY, "-B", folder, *options, *places]
    build = [scripts / "cmake", "--build", folder, "--target", "etrt_microbench"]
    for command in (configure, build):
        subprocess.run(command, check=True, capture_output=True)
    return folder / "benchmarks" / "native" / "etrt_microbench"


def off_against_compiled_out(outer: str, nested: str) -> tuple[float, float]:
    """Nanoseconds of a call, in turn."""
    without = build_without_tracing()
    samples: tuple[list[float], list[float]] = ([], [])
    for _ in range(RUNS):
        samples[0].append(microbench("delegate", outer, nested, "2")["delegate_ns"])
        command = [without, "delegate", outer, nested, "2"]
        result = subprocess.run(command, check=True, capture_output=True, text=True)
        samples[1].append(json.loads(result.stdout)["delegate_ns"])
    return statistics.median(samples[0]), statistics.median(samples[1])


if __name__ == "__main__":
    outer, nested = write_models()
    off, compiled_out = off_against_compiled_out(outer, nested)
    runs = [microbench("profiling", outer, "2") for _ in range(RUNS)]

    def middle(key: str) -> float:
        return statistics.median(run[key] for run in runs)

    phase = (middle("phases_ns") - middle("off_traced_ns")) / 7
    layer = (middle("layers_ns") - middle("phases_ns")) / middle("layers_per_call")
    report(
        "profiling_overhead",
        "Level off costs nothing to measure, a phase event under 0.3 us on top of ETDump's own, a layer under 1 us.",
        {
            "off_ns": round(off, 1),
            "compiled_out_ns": round(compiled_out, 1),
            "off_ratio": round(off / compiled_out, 4),
            "aim_off_ratio": 1.01,
            "phase_event_ns": round(phase, 1),
            "etdump_event_ns": round(middle("etdump_event_ns"), 1),
            "phase_on_top_ns": round(phase - middle("etdump_event_ns"), 1),
            "aim_phase_on_top_ns": 300,
            "layer_record_ns": round(layer, 1),
            "aim_layer_record_ns": 1000,
            "call_off_us": round(middle("off_ns") / 1000, 3),
            "call_phases_us": round(middle("phases_ns") / 1000, 3),
            "call_layers_us": round(middle("layers_ns") / 1000, 3),
        },
    )
