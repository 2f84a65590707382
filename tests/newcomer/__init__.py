"""A newcomer's first hour, played from a wheel in an empty environment: `make newcomer`. See play.py."""
