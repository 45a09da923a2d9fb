"""What people deploy with: image, compose file, Kubernetes manifests, workflows, lock. Checks find seeded faults."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml
from packaging.requirements import Requirement

from rag_service import __version__
from rag_service.cli import main
from rag_service.settings import load_settings, setting_fields, setting_name

TOOLS = Path(sys.executable).parent
KUBERNETES = "1.34"
Resource = dict[str, Any]


def run_tool(*command: str | Path, given: str = "") -> str:
    """What a tool complains about; empty if it is content."""
    done = subprocess.run([TOOLS / command[0], *command[1:]], input=given, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def compose_services(checkout: Path) -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((checkout / "compose.yaml").read_text("utf-8"))["services"]
    return services


def resources(checkout: Path) -> list[Resource]:
    files = sorted((checkout / "docs" / "deploy" / "kubernetes").glob("*.yaml"))
    return [resource for file in files for resource in yaml.safe_load_all(file.read_text("utf-8"))]


# -- image


def test_the_image_passes_hadolint_and_a_careless_one_does_not(checkout: Path) -> None:
    recipe = (checkout / "Dockerfile").read_text("utf-8")
    assert run_tool("hadolint", "--no-color", "-", given=recipe) == ""
    careless = re.sub(r"(?m)^USER .*", "USER root", recipe.replace("python:3.12-slim-trixie", "python:latest"))
    complaints = run_tool("hadolint", "--no-color", "-", given=careless.replace("uv==0.13.9", "uv"))
    assert {"DL3002", "DL3007", "DL3013"} <= set(re.findall(r"DL\d+", complaints))


def test_the_image_installs_what_the_lock_has(checkout: Path) -> None:
    recipe = (checkout / "Dockerfile").read_text("utf-8")
    extras = re.search(r'ARG EXTRAS="([^"]*)"', recipe)
    project = tomllib.loads((checkout / "pyproject.toml").read_text("utf-8"))["project"]
    assert extras is not None and set(extras[1].split()) <= set(project["optional-dependencies"])
    assert "uv sync --frozen" in recipe


# -- compose file


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ("vendor.compose-spec", "compose.yaml"),
        ("vendor.github-workflows", ".github/workflows/test.yml"),
        ("vendor.github-workflows", ".github/workflows/release.yml"),
    ],
)
def test_compose_file_and_workflows_follow_their_schemas(
    checkout: Path, tmp_path: Path, schema: str, name: str
) -> None:
    content = yaml.load((checkout / name).read_text("utf-8"), yaml.BaseLoader)  # noqa: S506 - `on` stays a word
    assert run_tool("check-jsonschema", "--builtin-schema", schema, checkout / name) == ""
    faulty = tmp_path / "faulty.yaml"
    for part in content["services" if "services" in content else "jobs"].values():
        part["timeout"] = {"after": 5}
    faulty.write_text(yaml.safe_dump(content), "utf-8")
    assert "timeout" in run_tool("check-jsonschema", "--builtin-schema", schema, faulty)


def test_the_compose_file_sets_only_settings_that_exist(checkout: Path) -> None:
    known = {setting_name(key) for key in setting_fields()}
    environments = [service.get("environment", {}) for service in compose_services(checkout).values()]
    used = {name for environment in environments for name in environment if name.startswith("RAG_")}
    assert used
    assert used <= known


def test_the_compose_file_starts_with_nothing_set_but_what_it_demands(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody has set arrives empty; what must be set is marked with `:?`."""
    services = compose_services(checkout)
    for name in ("service", "worker", "migrate"):
        with monkeypatch.context() as patch:
            for setting, value in services[name]["environment"].items():
                filled = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", re.sub(r"\$\{\w+:\?[^}]*\}", "secret", str(value)))
                assert "$" not in filled
                patch.setenv(setting, filled)
            assert load_settings().auth.mode == "required"


def test_compose_commands_exist(checkout: Path) -> None:
    ours = [service["command"][0] for service in compose_services(checkout).values() if service.get("build")]
    assert set(ours) <= set(main.list_commands(click.Context(main)))


def test_every_image_has_a_version(checkout: Path) -> None:
    named = [service["image"] for service in compose_services(checkout).values() if not service.get("build")]
    named += [container["image"] for resource in resources(checkout) for container in containers(resource)]
    assert len(named) > 5
    assert not [image for image in named if not re.search(r":\d+\.\d+", image)]


# -- Kubernetes


def containers(resource: Resource) -> Iterator[Resource]:
    pod = resource["spec"]["template"]["spec"] if "template" in resource.get("spec", {}) else {}
    yield from pod.get("initContainers", []) + pod.get("containers", [])


def find_faults(resources: list[Resource]) -> list[str]:
    """What the API server would refuse, or what would not find its counterpart."""
    faults = []
    for resource in resources:
        try:
            kubernetes_validate.validate(resource, KUBERNETES, strict=True)
        except kubernetes_validate.ValidationError as error:
            faults.append(f"{resource['kind']}: {error.message}")
    pods = [resource["spec"]["template"] for resource in resources if "template" in resource.get("spec", {})]
    ports = {port["name"] for resource in resources for one in containers(resource) for port in one.get("ports", ())}
    for resource in resources:
        if resource["kind"] == "Service":
            selector, target = resource["spec"]["selector"], resource["spec"]["ports"][0]["targetPort"]
            if not [pod for pod in pods if selector.items() <= pod["metadata"]["labels"].items()]:
                faults.append(f"Service: nothing has the labels {selector}")
            faults += [] if target in ports else [f"Service: no port {target}"]
    settings = next(resource["data"] for resource in resources if resource["kind"] == "ConfigMap")
    faults += [f"ConfigMap: {name}" for name in settings.keys() - {setting_name(key) for key in setting_fields()}]
    return faults


def test_the_manifests_fit_kubernetes_the_settings_and_each_other(checkout: Path) -> None:
    assert find_faults(resources(checkout)) == []


@pytest.mark.parametrize(
    ("kind", "old", "new", "fault"),
    [
        ("Deployment", "readinessProbe:", "readynessProbe:", "Deployment"),
        ("Deployment", "replicas: 2", "replicas: two", "Deployment"),
        ("Service", "app: rag-service", "app: another", "nothing has the labels"),
        ("Service", "targetPort: http", "targetPort: web", "no port web"),
        ("ConfigMap", "RAG_AUTH:", "RAG_ATUH:", "RAG_ATUH"),
    ],
)
def test_a_seeded_fault_in_a_manifest_is_found(checkout: Path, kind: str, old: str, new: str, fault: str) -> None:
    sound = resources(checkout)
    seeded = [yaml.safe_load(yaml.safe_dump(one).replace(old, new)) if one["kind"] == kind else one for one in sound]
    assert seeded != sound
    assert fault in " ".join(find_faults(seeded))


def test_the_manifests_start_the_service_as_an_ordinary_user(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = resources(checkout)
    pod = next(resource for resource in found if resource["kind"] == "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsUser"] == 1000
    assert "USER 1000" in (checkout / "Dockerfile").read_text("utf-8")
    for setting, value in found[[resource["kind"] for resource in found].index("ConfigMap")]["data"].items():
        monkeypatch.setenv(setting, value)
    assert load_settings().http.shutdown_seconds < pod["terminationGracePeriodSeconds"]
    assert {container["args"][0] for container in pod["initContainers"] + pod["containers"]} <= set(
        main.list_commands(click.Context(main))
    )


# -- lock


def test_the_lock_fits_the_project_and_the_public_index(checkout: Path) -> None:
    """As `uv lock --check`, which needs the network, names it: `uv lock` after a change of dependencies."""
    text = (checkout / "uv.lock").read_text("utf-8")
    assert set(re.findall(r"https?://([^/\"]+)", text)) == {"pypi.org", "files.pythonhosted.org"}
    (locked,) = [one for one in tomllib.loads(text)["package"] if one["name"] == "rag-service"]
    project = tomllib.loads((checkout / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {(one.name.lower(), str(one.specifier)) for one in map(Requirement, project["dependencies"])}
    for requirements in project["optional-dependencies"].values():
        wanted |= {(one.name.lower(), str(one.specifier)) for one in map(Requirement, requirements)}
    listed = locked["metadata"]["requires-dist"]
    assert {(one["name"], canonical(one.get("specifier", ""))) for one in listed} == {
        (re.sub(r"[-_.]+", "-", name), canonical(specifier)) for name, specifier in wanted
    }
    assert set(locked["metadata"]["provides-extras"]) == set(project["optional-dependencies"])


def canonical(specifier: str) -> str:
    return ",".join(sorted(part.strip() for part in specifier.split(",")))


# -- release


def test_a_release_has_absolute_links_and_project_urls(checkout: Path, tmp_path: Path) -> None:
    """The package index shows the README without its repository, whose address the workflow knows."""
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(checkout / name, tmp_path)
    address, tag = "https://code.example.org/team/rag", f"v{__version__}"
    script = checkout / ".github" / "prepare_release.py"
    subprocess.run([sys.executable, script, address, tag], cwd=tmp_path, check=True)
    links = re.findall(r"\]\(([^)]+)\)", (tmp_path / "README.md").read_text("utf-8"))
    assert len(links) > 15
    assert not [link for link in links if not link.startswith("https://")]
    for link in links:
        path = re.sub(rf"^{address}/(blob|raw)/{tag}/", "", link)
        assert (checkout / path).exists(), link
    urls = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    assert urls["Source"] == address
    wrong = subprocess.run([sys.executable, script, address, "v9.9.9"], cwd=tmp_path, capture_output=True, check=False)
    assert f"v{__version__}".encode() in wrong.stderr and wrong.returncode == 1


def test_a_worker_has_no_health_check_on_a_port_that_it_lacks(checkout: Path) -> None:
    services = compose_services(checkout)
    assert services["worker"]["healthcheck"] == {"disable": True}
    assert "8000" in str(services["service"]["healthcheck"]["test"])
