import pytest

pytest.importorskip("pyspark.sql.datasource", reason="needs data sources in Python (Spark 4.0)")
