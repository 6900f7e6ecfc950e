"""Scenarios as Bazel tests: each file under scenarios/ is a test of its own, `//scenarios:nan/lr-too-high`."""

load(":targets.bzl", "SCENARIOS")

def scenario_tests():
    """One test per scenario file; targets.bzl is written by `trainwreck list --format bazel`."""
    for scenario in SCENARIOS:
        native.sh_test(
            name = scenario.name,
            size = scenario.size,
            timeout = "long",  # machines differ; each run has its own budget
            srcs = ["run_scenario.sh"],
            args = ["scenarios/" + scenario.file, "$(rootpath //harness/trainer:target)"],
            data = [
                "//harness/cli:trainwreck",
                "//harness/trainer:target",
            ] + native.glob(["**/*.yaml"]),
            tags = ["scenario", "cpu:%d" % scenario.cores] + scenario.tags,
        )
