"""Packages: which files belong to one, what their modules are called, what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from qoqi.compiler.project.load import DiskReader, Package, find_root, load_package


def write(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return str(root)


def load(root: Path, files: dict[str, str]) -> Package:
    return load_package(DiskReader(), write(root, files))


def modules(package: Package) -> list[str]:
    return sorted(source.module for source in package.sources)


def found(package: Package) -> list[str]:
    return [f"{d.code} {d.message}" for d in package.diagnostics]


def test_a_folder_without_a_manifest_is_a_package(tmp_path: Path) -> None:
    package = load(
        tmp_path / "shop",
        {"order.flow": "", "billing/invoice.flow": "", ".git/x.flow": "", "notes.txt": ""},
    )
    assert package.name == "shop"
    assert modules(package) == ["billing.invoice", "order"]
    assert package.packages == {"billing.invoice": "", "order": ""}
    assert (found(package), package.manifest) == ([], None)


def test_names_are_relative_to_the_source_folder(tmp_path: Path) -> None:
    package = load(
        tmp_path,
        {
            "flow.toml": 'name = "shop"\nsources = ["examples", "more"]\n',
            "examples/order.flow": "",
            "more/a/b.flow": "",
            "other/c.flow": "",
        },
    )
    assert package.name == "shop"
    assert modules(package) == ["a.b", "order"]
    assert found(package) == []


def test_a_file_brings_what_it_imports_from_beside_it(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "report.flow": "import rows.{Row}\nimport std.http\n",
            "rows.flow": "import deep.down\n",
            "deep/down.flow": "import report\n",
            "other.flow": "",
        },
    )
    package = load_package(DiskReader(), f"{root}/report.flow")
    assert modules(package) == ["deep.down", "report", "rows"]


def test_a_file_of_any_name_is_a_module(tmp_path: Path) -> None:
    root = write(tmp_path, {"F0001-an-effect.flow": ""})
    package = load_package(DiskReader(), f"{root}/F0001-an-effect.flow")
    assert modules(package) == ["_F0001_an_effect"]


def test_dependencies_by_path(tmp_path: Path) -> None:
    write(tmp_path / "money", {"flow.toml": 'name = "money"\n', "rates.flow": ""})
    package = load(
        tmp_path / "shop",
        {
            "flow.toml": 'name = "shop"\n[dependencies]\ncash = { path = "../money" }\n',
            "order.flow": "",
        },
    )
    assert modules(package) == ["cash.rates", "order"]
    assert package.packages == {"order": "", "cash.rates": "cash"}
    assert found(package) == []


WRONG_MANIFESTS = [
    ("name = ", "E0211 flow.toml is not TOML"),
    ("", "E0211 a package has a name in lower case"),
    ('name = "Shop"', "E0211 a package has a name in lower case"),
    ('name = "a"\nsource = ["x"]', "E0211 `source` is not a setting of flow.toml"),
    ('name = "a"\nsources = "x"', "E0211 `sources` is a list of folders"),
    ('name = "a"\nsources = ["x"]', "E0211 there is no source folder `x`"),
    ('name = "a"\ndependencies = 1', "E0211 `dependencies` is a table"),
    ('name = "a"\n[dependencies]\nb = "../b"', "E0211 dependency `b` is not written as"),
    ('name = "a"\n[dependencies]\nb = { path = "../b" }', "E0211 dependency `b` is not there"),
    ('name = "a"\n[dependencies]\nb = { path = "." }', "E0211 dependency `b` leads back"),
]


@pytest.mark.parametrize(("manifest", "message"), WRONG_MANIFESTS)
def test_a_wrong_manifest(tmp_path: Path, manifest: str, message: str) -> None:
    package = load(tmp_path, {"flow.toml": manifest, "order.flow": ""})
    assert [text[: len(message)] for text in found(package)] == [message]


def test_the_place_of_a_mistake_in_a_manifest(tmp_path: Path) -> None:
    text = 'name = "a"\nsource = ["x"]\n'
    package = load(tmp_path, {"flow.toml": text})
    (diagnostic,) = package.diagnostics
    assert diagnostic.file == str(tmp_path / "flow.toml")
    assert text[slice(*diagnostic.span)] == "source"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my-order.flow", "E0212 `my-order` cannot be part of a module's name"),
        ("Billing/a.flow", "E0212 `Billing` cannot be part of a module's name"),
        ("std/http.flow", "E0212 `std.http` would be a module of the standard library"),
    ],
)
def test_files_that_cannot_be_modules(tmp_path: Path, name: str, message: str) -> None:
    package = load(tmp_path, {name: "", "order.flow": ""})
    assert found(package) == [message]
    assert modules(package) == ["order"]


def test_two_files_of_one_name(tmp_path: Path) -> None:
    manifest = 'name = "a"\nsources = ["x", "y"]\n'
    package = load(tmp_path, {"flow.toml": manifest, "x/m.flow": "1", "y/m.flow": "2"})
    assert found(package) == ["E0212 a second module is named `m`"]
    assert [source.text for source in package.sources] == ["1"]


def test_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "bad.flow").write_bytes(b"fn \xff")
    package = load_package(DiskReader(), str(tmp_path))
    assert found(package) == ["E0212 this file is not UTF-8 text (byte 3)"]


def test_the_package_around_a_path(tmp_path: Path) -> None:
    root = write(tmp_path, {"flow.toml": 'name = "a"\n', "src/deep/m.flow": ""})
    reader = DiskReader()
    assert find_root(reader, f"{root}/src/deep/m.flow") == root
    assert find_root(reader, f"{root}/src") == root
