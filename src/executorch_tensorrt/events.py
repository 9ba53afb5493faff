"""The names of a delegate's events, as the native library has them."""

from __future__ import annotations

from executorch_tensorrt import _native

# The whole call, then its phases in the order in which they run.
EVENTS = tuple(_native.event_names())
DELEGATE_EVENT, INPUT_BINDING, SHAPE_INFERENCE, OUTPUT_BINDING, ENQUEUE, OUTPUT_STAGING, SYNCHRONIZE = EVENTS
PHASES = EVENTS[1:]
EVENT_PREFIX = DELEGATE_EVENT.removesuffix("delegate")
