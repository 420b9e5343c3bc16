"""Where clients of ONNX Runtime import its classes of errors from."""
