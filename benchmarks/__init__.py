"""Measurements that anybody can repeat: each module prints its own figures when it is run."""
