# The training stacks in Python that tests run; sourced by ci/test.sh after ci/setup.sh. Sets STACKS, the options of `bazel test` by
# which they are found. What cannot be had is said here, and each test that needs it is skipped with its reason.

# By default: Debian's torch 1.13 (ci/setup.sh), a Trainer of Hugging Face that it can run, pytest and libraries that read options, with what
# they import: 17 MB.
SMALL_STACKS=(transformers==4.28.1 filelock==3.13.1 fsspec==2024.3.1 huggingface-hub==0.16.4 PyYAML==6.0.1 regex==2023.12.25
  tokenizers==0.13.3 tqdm==4.66.2 pytest==8.3.4 iniconfig==2.0.0 packaging==24.0 pluggy==1.5.0 jsonargparse==4.35.0
  click==8.1.8 typer==0.15.2 shellingham==1.5.4 rich==13.9.4 absl-py==2.1.0 tyro==1.0.17 docstring_parser==0.16 typeguard==4.4.2
  typing_extensions==4.13.2 fire==0.7.0 termcolor==2.5.0 hydra-core==1.3.2 omegaconf==2.3.0 antlr4-python3-runtime==4.9.3)

find_small_stacks() {
  local folder
  folder="$TRAINWRECK_CACHE/python-packages-$(sha256sum <<<"${SMALL_STACKS[*]}" | cut -c 1-12)"
  install_packages "$folder" "the tests that need them" "${SMALL_STACKS[@]}" || return 0
  STACKS+=("--test_env=TRAINWRECK_STACKS_PACKAGES=$folder")
}

# All of them, of today: 3 GB to download, 5 GB on disk.
find_all_stacks() {
  local python="$TRAINWRECK_CACHE/python-stacks/bin/python3"
  # MLflow without its server, which is most of it.
  if ! "$python" -c 'import accelerate, alembic, fire, hydra, jsonargparse, kubernetes_validate, lightning, mlflow, mpi4py, pyarrow, pytest, sklearn, sqlalchemy
import tensorboard, torchtitan.train, transformers, typer, wandb, x_transformers' 2>/dev/null; then
    # Without a pip of its own, which would take one more Debian package.
    [ -x "$python" ] || python3 -m venv --without-pip "$TRAINWRECK_CACHE/python-stacks"
    python3 -m pip --python "$python" install -q accelerate alembic fire hydra-core "jsonargparse[signatures]" kubernetes-validate lightning mlflow-skinny mpi4py pyarrow \
      pytest scikit-learn sqlalchemy tensorboard "torch==$TORCH_VERSION" torchtitan==0.2.2 \
      transformers typer wandb x-transformers >&2
  fi
  STACKS+=("--test_env=TRAINWRECK_STACKS_PYTHON=$python")
}

# axe-core, the script that looks for breaches of accessibility in pages, as a wheel packs it: 0.2 MB.
find_axe() {
  local package=axe-playwright-python==0.1.8
  local folder="$TRAINWRECK_CACHE/${package//==/-}"
  install_packages "$folder" "the tests of accessibility" "$package" || return 0
  STACKS+=("--test_env=TRAINWRECK_AXE=$folder/axe_playwright_python/axe.min.js")
}

# What checks the package in Python, with what they import: 30 MB to download, 100 MB on disk.
PYTHON_CHECKERS=(ruff==0.17.6 mypy==2.4.1 ast_serialize==0.13.1 librt==0.17.0 mypy_extensions==1.2.0 pathspec==1.1.1
  typing_extensions==4.16.0)

find_python_checkers() {
  local folder
  folder="$TRAINWRECK_CACHE/python-checkers-$(sha256sum <<<"${PYTHON_CHECKERS[*]}" | cut -c 1-12)"
  install_packages "$folder" "the checks of the package in Python" "${PYTHON_CHECKERS[@]}" || return 0
  STACKS+=("--test_env=TRAINWRECK_PYTHON_CHECKERS=$folder")
}

STACKS=()
if [ -n "${WITH_PYTHON_STACKS:-}" ]; then find_all_stacks; else find_small_stacks; fi
find_axe
find_python_checkers
