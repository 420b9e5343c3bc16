"""Random models of scikit-learn, LightGBM and XGBoost, as exporters write them."""
