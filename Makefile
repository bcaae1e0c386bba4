# `make` lists the commands. They install into .venv; vLLM goes into an environment of its own.
# PATH: a build among the dependencies calls `python`.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# What is imported is compiled then, and kept; to compile all that is installed takes minutes.
unexport PYTHONDONTWRITEBYTECODE
# uv installs in parallel; like pip it trusts what the machine trusts, and looks where pip was told to look.
uv := UV_SYSTEM_CERTS=1 UV_FIND_LINKS="$(PIP_FIND_LINKS)" .venv/bin/uv pip install -q --python .venv

# The demo model repeats its prompt: most of its tokens can be guessed from there, which halves the CPU time of a run.
speculate := --speculative-config.method ngram --speculative-config.num_speculative_tokens 4 \
  --speculative-config.prompt_lookup_min 2 --speculative-config.prompt_lookup_max 4

help:
	@sed -n 's/^\([a-z-]*\):.*##/make \1 /p' Makefile

demo: venv ## install everything, then a small real model plays all five families
	$(uv) -r requirements/run.txt
	$(uv) --no-deps --reinstall-package evalharness .
	.venv/bin/evalharness server install
	.venv/bin/evalharness run --model demo --suite open --tasks all --draw 2 --max-turns 15 --max-tokens 128 \
	  --vllm-args "$(speculate)"
	@run=$$(ls -dt results/demo-open-* | head -1) && .venv/bin/evalharness report $$run -o $$run/report.html
	@echo "next, your own model: .venv/bin/evalharness run --model CHECKPOINT --suite open --tasks all"

test: development ## install everything, then run the tests that take minutes
	.venv/bin/pytest -n 3 --dist loadfile -m "not long"

test-all: test rest ## also run the long tests: servers, trainings, trainers, installations, faults

rest: development
	EVALHARNESS_TEST_EXAMPLES=150 .venv/bin/pytest -n 3 --dist loadfile -m "long or property"

development: system venv
	$(uv) -r requirements/dev.txt
	$(uv) --no-deps -e .
	.venv/bin/evalharness server install --cpu

# Needs uv. The last line of each Python is a run folder; what is uploaded is what was tried.
release: ## build sdist and wheel in dist/, check them, play with the wheel on Python 3.11, 3.12 and 3.13
	rm -rf dist && uv build -q -o dist
	uvx twine check dist/*.whl dist/*.tar.gz
	for version in 3.11 3.12 3.13; do \
	  uvx --python $$version --from dist/*.whl evalharness run --model oracle --suite open --tasks all --limit 1 -o dist/played-$$version || exit 1; \
	done
	@echo "to publish: uvx twine upload dist/*.whl dist/*.tar.gz"

venv:
	[ -x .venv/bin/uv ] || { python3 -m venv .venv && .venv/bin/pip install -q uv; }

# Some tests use Chromium and the Inform 6 Library; on Debian and Ubuntu they come from apt.
system:
	-@([ -f /usr/share/inform6/library/parser.h ] && command -v chromium || ($$(command -v sudo) apt-get -qq update && $$(command -v sudo) apt-get -qq install -y chromium inform6-library)) >/dev/null

.PHONY: help demo test test-all rest development release venv system
