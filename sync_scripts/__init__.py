"""Standalone scripts that load SIS exports into the roster and send files to vendors. Of the service they import what
operators change and what is stored, and nothing that serves requests but the warm-up; `setup.cfg` has the contract."""
