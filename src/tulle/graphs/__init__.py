"""(room in the making)"""
