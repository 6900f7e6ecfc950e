#!/usr/bin/env bash
exec python3 faults/recipe_test.py harness/cli/trainwreck trainer/trainwreck-trainer faults/recipe.yaml
