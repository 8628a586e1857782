SELECT lsm_create_opclass('citext_ops');
