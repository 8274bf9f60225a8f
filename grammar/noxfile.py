"""nox, in an unpacked source distribution: the tests on each Python, and with the lowest versions of the packages."""

import nox

LIBRARY = ".[django,marshmallow,pandas,polars,pydantic,sqlalchemy]"
TOOLS = (
    *("pytest>=8", "hypothesis>=6.100", "railroad-diagrams>=3", "flask>=3", "typing-extensions>=4.6"),
    *("psycopg2-binary>=2.9", "pymysql>=1.1", "mypy>=1.15", "basedpyright>=1.20", "pandas-stubs", "django-stubs"),
)
LOWEST = (
    *("lark==1.1.9", "sqlalchemy==2.0.13", "django==4.2", "marshmallow==3.20.0", "pydantic==2.5.0"),
    *("pandas==2.0.0", "numpy<2", "polars==1.0.0"),
)


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def newest(session: nox.Session) -> None:
    """Run the tests with the newest packages."""
    session.install(LIBRARY, *TOOLS)
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """Run the tests with the oldest packages that the metadata allows."""
    session.install(LIBRARY, *TOOLS, *LOWEST)
    session.run("python", "-m", "pytest", *session.posargs)
