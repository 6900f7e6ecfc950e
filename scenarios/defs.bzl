"""Scenarios as Bazel tests: each file under scenarios/ is a test of its own, `//scenarios:nan/lr-too-high`."""

load(":targets.bzl", "SCENARIOS")

def scenario_test(name, scenario, target, data = [], tags = [], cores = 1, **kwargs):
    """A test that runs one scenario, in this or in any other repository.

    Args:
      name: of the test.
      scenario: the file.
      target: the program that trains.
      data: what the scenario needs beside it: the files that it extends.
      tags: of the test.
      cores: that its runs may use; as many as its ranks.
      **kwargs: of sh_test.
    """
    trainwreck = "@trainwreck//harness/cli:trainwreck"
    native.sh_test(
        name = name,
        timeout = "long",  # machines differ; each run has its own budget
        srcs = ["@trainwreck//scenarios:run_scenario.sh"],
        args = ["$(rootpath %s)" % label for label in [trainwreck, scenario, target]] + [str(cores)],
        data = [trainwreck, scenario, target] + data,
        tags = [
            "cpu:%d" % cores,
            "scenario",
        ] + tags,
        **kwargs
    )

def scenario_tests():
    """One test per scenario file; targets.bzl is written by `trainwreck list --format bazel`."""
    for scenario in SCENARIOS:
        scenario_test(
            name = scenario.name,
            size = scenario.size,
            scenario = scenario.file,
            target = "//trainer:target",
            data = scenario.extended + ["invariants.yaml"],
            tags = scenario.tags,
            cores = scenario.cores,
        )
