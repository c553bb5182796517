"""The only Airflow-aware code outside dags/ and plugins/."""
