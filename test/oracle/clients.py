class ClientsRound: pass
