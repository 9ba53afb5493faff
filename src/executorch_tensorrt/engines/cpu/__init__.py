"""The engine that runs on any CPU: a nested ExecuTorch program."""
