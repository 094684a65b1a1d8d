"""The version is that of the installed package; sources that were never installed say so."""

from importlib import metadata

from jaxdyn import version


def test_the_version_is_the_installed_one():
    assert version.installed_version() == metadata.version("jaxdyn")


def test_sources_that_were_never_installed(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(version, "version", missing)
    assert version.installed_version() == "0+unknown"
