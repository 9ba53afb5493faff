"""TensorRT's engine kinds: `tensorrt` and `tensorrt_rtx`.

`library`, `network` and `options` know TensorRT alone, and run without torch. The rest makes ONNX models of partitions.
"""
