"""The vLLM server: installed in an environment of its own, found, started for one model, ended with us."""
