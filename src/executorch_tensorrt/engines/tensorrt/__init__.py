"""TensorRT's engine kinds: `tensorrt` and `tensorrt_rtx`.

What builds engines of ONNX models (`network`), or what an export asked for elsewhere (`build_requests`), knows TensorRT
alone and runs without torch. The rest makes ONNX models of partitions.
"""
