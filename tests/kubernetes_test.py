#!/usr/bin/env python3
"""The manifests of examples/kubernetes: valid, and their shards, run here pod by pod, are as one run.

Usage: kubernetes_test.py TRAINWRECK FAKE_TARGET [unittest options]

The schema is that of the Python package kubernetes-validate, where TRAINWRECK_STACKS_PYTHON has it.
"""
import json
import os
import subprocess
import sys
import unittest

import unittest_xml
from slurm_testing import SlurmTestCase

sys.path.append(os.environ.get("TRAINWRECK_STACKS_PACKAGES", ""))
try:
    import yaml
except ImportError:
    yaml = None

SlurmTestCase.trainwreck, SlurmTestCase.target = map(os.path.abspath, sys.argv[1:3])
FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples/kubernetes")
PYTHON = os.environ.get("TRAINWRECK_STACKS_PYTHON", sys.executable)
HAS_SCHEMA = subprocess.run([PYTHON, "-c", "import kubernetes_validate"], check=False, capture_output=True).returncode == 0
# On stdin manifests, on stdout a list of what is wrong with each.
VALIDATE = """import json, sys, kubernetes_validate
def errors(manifest):
    try:
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
        return ""
    except kubernetes_validate.ValidationError as error:
        return error.message
json.dump([errors(manifest) for manifest in json.load(sys.stdin)], sys.stdout)
"""


def manifests():
    found = {}
    for name in ("shards.yaml", "merge.yaml"):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            for manifest in yaml.safe_load_all(file):
                found[manifest["metadata"]["name"]] = manifest
    return found


def schema_errors(checked):
    done = subprocess.run([PYTHON, "-c", VALIDATE], input=json.dumps(checked), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@unittest.skipUnless(yaml, "no PyYAML: install python3-yaml, or see ci/python_stacks.sh")
class KubernetesTest(SlurmTestCase):
    def setUp(self):
        super().setUp()
        self.manifests = manifests()
        os.makedirs(self.path("bin"))
        os.symlink(self.trainwreck, self.path("bin/trainwreck"))
        os.makedirs(self.path("results"))

    @unittest.skipUnless(HAS_SCHEMA, "no schema of Kubernetes: ci/test.sh --with-python-stacks installs kubernetes-validate")
    def test_they_follow_the_schema(self):
        self.assertEqual(schema_errors(list(self.manifests.values())), ["", "", ""])
        for break_it in (lambda job: job["spec"].update(completionMode=3), lambda job: job["spec"].update(retries=2),
                         lambda job: job["spec"]["template"]["spec"]["containers"][0].pop("name")):
            broken = manifests()["trainwreck-shards"]
            break_it(broken)
            self.assertNotEqual(schema_errors([broken]), [""])

    def test_they_fit_together(self):
        self.assertEqual(sorted(self.manifests), ["trainwreck-merge", "trainwreck-results", "trainwreck-shards"])
        spec = self.manifests["trainwreck-shards"]["spec"]
        self.assertEqual(spec["completionMode"], "Indexed")
        [container] = spec["template"]["spec"]["containers"]
        self.assertEqual({"name": "SHARDS", "value": str(spec["completions"])}, container["env"][0])
        self.assertEqual(spec["podFailurePolicy"]["rules"][1]["onExitCodes"]["containerName"], container["name"])
        for name in ("trainwreck-shards", "trainwreck-merge"):
            pod = self.manifests[name]["spec"]["template"]["spec"]
            self.assertEqual(pod["restartPolicy"], "Never")  # a policy for failed pods needs it
            self.assertEqual(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], "trainwreck-results")
            self.assertEqual(pod["containers"][0]["volumeMounts"], [{"name": "results", "mountPath": "/results"}])

    def pod(self, name, **variables):
        """Runs the container's command here, with its volume in our folder."""
        [container] = self.manifests[name]["spec"]["template"]["spec"]["containers"]
        words = [word.replace("/results", self.path("results")) for word in container["command"] + container["args"]]
        environment = {**self.environment, "PATH": self.path("bin") + ":" + os.environ["PATH"],
                       **{variable["name"]: variable["value"] for variable in container.get("env", []) if "value" in variable}, **variables}
        return subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=120)

    def shards(self, *indices, **variables):
        for index in indices:
            done = self.pod("trainwreck-shards", JOB_COMPLETION_INDEX=str(index), HOSTNAME=f"pod-{index}", **variables)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_shards_are_as_one_run(self):
        self.write_scenario("weak", quality="at_end loss < 0.0001")
        self.shards(0, 1, 2, 3)
        done = self.pod("trainwreck-merge")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("# 4 cases: 3 pass, 1 fail; ", done.stdout)
        self.assert_as_one_run("results/all")
        self.assertEqual([name for name in os.listdir(self.path("results")) if "history" in name], [])
        done = self.pod("trainwreck-merge", TRAINWRECK_HISTORY=self.path("history.db"))
        self.assertIn(f"# history: run 1 in {self.path('history.db')}", done.stdout, done.stderr)

    def test_shards_are_balanced_by_measured_costs(self):
        self.write_scenario("d")
        costs = {"schema": "trainwreck/costs", "version": 1, "seconds": {"fake/a": 1, "fake/b": 1, "fake/c": 1, "fake/d": 1000}}
        self.write("costs.json", json.dumps(costs))
        self.shards(0, 1, SHARDS="2", SHARD_COSTS=self.path("costs.json"))
        shards = []
        for number in (1, 2):
            verdicts = json.loads(self.read(f"results/shard-{number}/verdicts.json"))["verdicts"]
            shards.append(sorted(verdict["case"] for verdict in verdicts))
        self.assertEqual(shards, [["fake/d"], ["fake/a", "fake/b", "fake/c"]])

    def test_a_pod_that_fails_leaves_no_shard(self):
        self.write_scenario("d")
        self.shards(0, 1, 2)
        os.rename(self.path("scenarios"), self.path("elsewhere"))
        done = self.pod("trainwreck-shards", JOB_COMPLETION_INDEX="3", HOSTNAME="pod-3")
        self.assertNotIn(done.returncode, (0, 1, 5, 6))
        done = self.pod("trainwreck-merge")
        self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
        self.assertIn("SHARDS ARE MISSING: 4/4", done.stderr)


if __name__ == "__main__":
    unittest_xml.main(sys.argv[3:])
