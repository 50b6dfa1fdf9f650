"""`python -m headstart`."""

from headstart.cli.main import run

if __name__ == "__main__":
    run()
