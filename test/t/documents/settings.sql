CREATE ROLE migrations;
