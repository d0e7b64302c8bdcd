#!/usr/bin/env python3
"""check_jobs.py JOB...: whether Kubernetes and Alibaba's PAI-DLC know every field of jobs that megalith-autoplan --emit k8s or dlc wrote.

A PyTorchJob's pods are checked as Pods against the schema of Kubernetes (kubernetes-validate), a DLC job against the request of DLC's SDK
(alibabacloud-pai-dlc20201203), which drops what it does not know. tools/setup --peers installs both.
"""
import json
import sys

import kubernetes_validate
from alibabacloud_pai_dlc20201203 import models

VERSION = "1.31"  # of Kubernetes


def check_kubernetes(job):
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": replica["template"]["spec"]}
        kubernetes_validate.validate(pod, VERSION, strict=True)


def kept(given, known, path=""):
    if isinstance(given, dict):
        for key, value in given.items():
            if key not in known:
                raise ValueError(f"{path}/{key} is not a field of DLC's request")
            kept(value, known[key], f"{path}/{key}")
    elif isinstance(given, list):
        for i, value in enumerate(given):
            kept(value, known[i], f"{path}[{i}]")
    elif given != known:
        raise ValueError(f"{path} is {given!r}, DLC's request keeps {known!r}")


def check_dlc(job):
    request = models.CreateJobRequest().from_map(job)
    request.validate()
    kept(job, request.to_map())


def main():
    failed = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            job = json.load(file)
        try:
            check_kubernetes(job) if "apiVersion" in job else check_dlc(job)
        except Exception as error:  # of the schema, of the SDK, or a ValueError of this file
            failed += 1
            print(f"{path}: {error}")
    print(f"{len(sys.argv) - 1} jobs, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
